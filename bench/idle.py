"""What a stack costs that has nothing to do: CPU time of the whole process, served as by `up`."""

from __future__ import annotations

import time

from bench.figures import Demand, Row
from bench.plan import Bench
from bench.process import Child
from bench.product import prepare

WINDOWS = 5


def measure(bench: Bench) -> list[Row]:
    """Measure one stretch in five windows; each figure is the share of one CPU in percent."""
    seconds = bench.plan.idle_seconds
    directory = bench.place.new()
    prepare(directory, 1, admitted=False)
    bench.say(f"idle CPU over {seconds:g} s")
    with Child(directory, lease=15) as child:
        child.told("ready")
        time.sleep(bench.plan.settling_seconds)
        began, before = time.monotonic(), child.cpu()
        windows = tuple(_window(child, seconds / WINDOWS) for _ in range(WINDOWS))
        share = 100 * (child.cpu() - before) / (time.monotonic() - began)
    bench.place.drop(directory)
    detail = f"{share:.2f} % over the whole {seconds:g} s; windows of {seconds / WINDOWS:g} s"
    demand = Demand(1.0, at_most=True)
    runs = ({"whole": share},)
    return [Row("idle", "idle CPU, served stack", "% of a CPU", windows, detail, demand, runs)]


def _window(child: Child, seconds: float) -> float:
    began, before = time.monotonic(), child.cpu()
    time.sleep(seconds)
    return 100 * (child.cpu() - before) / (time.monotonic() - began)
