"""`python -m bench`: measure, print one table, write a JSON file. Exits 1 where it cannot."""

from __future__ import annotations

import argparse
import dataclasses
import gc
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bench import admission, drain, idle, recovery, start
from bench.figures import Row
from bench.plan import QUICK, Bench, Plan
from bench.process import ROOT
from bench.product import Place, log_to
from bench.report import Presence, Progress, file_system, surroundings, table, write

RESULTS = ROOT / "bench" / "results"
GOLDEN = ROOT / "tests" / "contract"
MEASURES: Mapping[str, Callable[[Bench], list[Row]]] = {
    "admission": admission.measure,
    "drain": drain.measure,
    "start": start.measure,
    "recovery": recovery.measure,
    "idle": idle.measure,
}


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, one run: a smoke test")
    parser.add_argument("--only", action="append", choices=MEASURES, help="one measure; repeatable")
    parser.add_argument("--runs", type=int, help="paired runs behind every median (default 5)")
    parser.add_argument("--dir", type=Path, default=RESULTS, help="where the files are measured")
    parser.add_argument("--out", type=Path, help="the JSON file (default: under bench/results)")
    return parser.parse_args(given)


def main(given: Sequence[str] | None = None) -> int:
    """Measure what was asked for."""
    asked = _arguments(given)
    plan = QUICK if asked.quick else Plan()
    if asked.runs is not None:
        plan = dataclasses.replace(plan, runs=max(asked.runs, 1))
    progress, presence = Progress(), Presence(RESULTS)
    place = Place(asked.dir)
    facts = surroundings(place.root)
    log_to(place.root / "product.log")
    bench, names = Bench(plan, place, progress.say), asked.only or list(MEASURES)
    rows: list[Row] = []
    fault = _measure(bench, names, rows)
    seconds, alone = progress.done(), presence.leave()
    place.close()
    out = asked.out or RESULTS / time.strftime("%Y%m%dT%H%M%SZ.json", time.gmtime())
    write(
        out, rows, {**facts, "seconds": seconds, "alone": alone, "plan": dataclasses.asdict(plan)}
    )
    _print(rows, asked.dir, plan, f"{seconds:.0f} s, {out}")
    if not alone:
        print("Another bench ran at the same time: these figures are spoilt.")
    if fault is not None:
        told = str(fault) or type(fault).__name__
        print(f"error: not everything could be measured: {told}", file=sys.stderr)
    return 0 if fault is None else 1


def _measure(bench: Bench, names: Sequence[str], rows: list[Row]) -> Exception | None:
    """Add the rows of the named measures; return what ended them early."""
    try:
        for name in names:
            gc.collect()
            rows += MEASURES[name](bench)
    except KeyboardInterrupt:
        bench.place.close()
        raise
    except Exception as fault:  # noqa: BLE001 - what was measured before is told all the same
        return fault
    return None


def _print(rows: Sequence[Row], directory: Path, plan: Plan, ending: str) -> None:
    kind = file_system(directory)
    print(table(rows))
    print(f"\nMedians of {plan.runs} paired runs on {kind}, synchronous=FULL; {ending}")
    if kind == "tmpfs":
        print("Not a disk: a commit costs nothing here, so the ratios tell CPU time alone.")
    for path in sorted(GOLDEN.glob("golden*.json")):
        print(f"\nCounts that CI checks, {path.relative_to(ROOT)}:")
        for name, counts in json.loads(path.read_text("utf-8")).items():
            print(f"  {name}: {json.dumps(counts)}")


if __name__ == "__main__":
    sys.exit(main())
