"""The figures of docs/scale.md: counted operations, public prices and published limits."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from string import Template
from typing import Any

from listen_finalization.reconcile import AGAIN_LIMIT

HERE = Path(__file__).parent
ROOT = HERE.parent
GOLDEN: Mapping[str, Mapping[str, int]] = json.loads(
    (ROOT / "tests" / "contract" / "golden_operations.json").read_text("utf-8")
)
PRICES: Mapping[str, Any] = json.loads((HERE / "prices.json").read_text("utf-8"))
DEPLOYED: Mapping[str, Any] = json.loads((ROOT / "deploy" / "production.json").read_text("utf-8"))

MILLION = 1_000_000
RUN_SECONDS = 20
"""How long a run is taken to last, nearly all of it waiting for a provider. An assumption."""

CALL_SECONDS = 0.01
"""What one call to Firestore or Cloud Tasks is taken to last inside a region. An assumption."""

GOAL = 10_000
"""Finalizations a second on the way to which the limits are looked for."""

SEQUENTIAL = 500
"""Writes a second to a collection with a rising indexed value ("Best practices")."""

RAMP_START, RAMP_GROWTH, RAMP_MINUTES = 500, 1.5, 5
"""Operations a second on a new collection, and their growth every so many minutes (same page)."""

QUEUE_RATE, QUEUE_CONCURRENCY = 500, 5_000
"""Dispatches a second and dispatches at once of one queue, at most (`RateLimits` reference)."""

TASKS_PER_JOB = 2
"""Cloud Tasks bills the creation of a task and each attempt at its delivery."""

ROUND_SECONDS = 60
"""How long a round of the reconciler takes rows (`Reconciler`, `budget`)."""

DELIVERING = 2
"""Checkpoints that carry a fanout, however many destinations it has."""

FLUSHES = 600
"""Flushes of a conversation of ten minutes, one a second."""

Operations = tuple[int, int, int]
"""Document reads, writes and deletes, as they are billed."""


def operations(name: str) -> Operations:
    """Return what a path costs, stored steps included."""
    told = GOLDEN[name]
    return (
        told["reads"] + told["step_reads"],
        told["writes"] + told["step_writes"],
        told["deletes"] + told["step_deletes"],
    )


def price(counted: Operations, region: str) -> float:
    """Return the price of one path, in dollars before any free quota."""
    told = PRICES["regions"][region]
    kinds = ("document_read", "document_write", "document_delete")
    return float(sum(n * told[kind] for n, kind in zip(counted, kinds, strict=True)))


def _paths() -> str:
    def cell(told: Mapping[str, int], kind: str) -> str:
        own, steps = told[kind], told[f"step_{kind}"]
        return f"{own} + {steps}" if steps else str(own)

    rows = (
        f"| {name.replace('_', ' ')} | {told['rpcs']} | {cell(told, 'reads')} "
        f"| {cell(told, 'writes')} | {cell(told, 'deletes')} |\n"
        for name, told in GOLDEN.items()
    )
    head = "| path | calls | reads | writes | deletes |\n|---|---|---|---|---|\n"
    return head + "".join(rows)


def _instance_second() -> float:
    worker = DEPLOYED["services"]["worker"]
    vcpu, gib = float(worker["cpu"]), float(worker["memory"].removesuffix("Gi"))
    return float(vcpu * PRICES["run_vcpu_second"] + gib * PRICES["run_gib_second"])


def _compute() -> float:
    """Return what the worker's instances cost for a million runs that keep all slots busy."""
    at_once = DEPLOYED["services"]["worker"]["concurrency"]
    return float(MILLION * RUN_SECONDS / at_once * _instance_second())


def _bill() -> str:
    regions = list(PRICES["regions"])
    reads, writes, deletes = operations("job_run")
    lines: dict[str, Callable[[str], float]] = {
        f"{reads} document reads": lambda region: MILLION * price((reads, 0, 0), region),
        f"{writes} document writes": lambda region: MILLION * price((0, writes, 0), region),
        f"{deletes} delete of step results": lambda r: MILLION * price((0, 0, deletes), r),
        "1 delete when the row expires (TTL)": lambda r: MILLION * price((0, 0, 1), r),
        f"{TASKS_PER_JOB} Cloud Tasks operations": lambda _: _tasks(),
    }
    rows = [(name, [cost(region) for region in regions]) for name, cost in lines.items()]
    total = [sum(column) for column in zip(*(cells for _, cells in rows), strict=True)]
    rows.append(("**together**", total))
    head = f"| for each job | {' | '.join(regions)} |\n|---|{'---|' * len(regions)}\n"
    return head + "".join(_money_row(name, cells) for name, cells in rows)


def _tasks() -> float:
    return float(MILLION * TASKS_PER_JOB * PRICES["tasks_operation"])


def _money_row(name: str, cells: list[float]) -> str:
    return f"| {name} | {' | '.join(f'{cell:.2f}' for cell in cells)} |\n"


def _extras() -> str:
    more = {
        "deliveries to destinations (two checkpoints)": _times(
            operations("checkpoint_with_effect"), 2
        ),
        "one renewal (a run of over 20 s)": operations("renewal"),
        "one failed attempt and its next claim": _sum(operations("fail"), operations("claim_seen")),
        "one status poll": operations("status_poll"),
        "one flush of segments": operations("append_more"),
    }
    regions = list(PRICES["regions"])
    head = f"| once for each of a million | {' | '.join(regions)} |\n|---|{'---|' * len(regions)}\n"
    return head + "".join(
        _money_row(name, [MILLION * price(told, region) for region in regions])
        for name, told in more.items()
    )


def _times(told: Operations, factor: int) -> Operations:
    return (told[0] * factor, told[1] * factor, told[2] * factor)


def _sum(one: Operations, other: Operations) -> Operations:
    return (one[0] + other[0], one[1] + other[1], one[2] + other[2])


def _load(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def figures() -> Mapping[str, str]:
    """Return every number and table that the page's template names."""
    told = {**_counts(), **_money(), **_deployed(), **_goal()}
    return {name: str(value) for name, value in told.items()}


def _counts() -> dict[str, object]:
    """Return what was counted, and the loads that follow from it alone."""
    run, whole = GOLDEN["job_run"], GOLDEN["job"]
    each = sum(operations("job_run"))
    return {
        "paths": _paths(),
        "job_calls": whole["rpcs"],
        "job_reads": whole["reads"],
        "job_writes": whole["writes"],
        "moves": run["job_writes"],
        "each": each,
        "sequential_rate": _load(SEQUENTIAL / run["job_writes"]),
        "delivering_rate": _load(SEQUENTIAL / (run["job_writes"] + DELIVERING)),
        "ramp_rate": _load(RAMP_START / each),
    }


def _money() -> dict[str, object]:
    flushes = FLUSHES * MILLION * price(operations("append_more"), "us-central1")
    return {
        "as_of": PRICES["as_of"],
        "bill": _bill(),
        "extras": _extras(),
        "compute": f"{_compute():.0f}",
        "instance_month": f"{_instance_second() * 86_400 * 30:.2f}",
        "flush_count": FLUSHES,
        "flushes": f"{flushes:.0f}",
    }


def _deployed() -> dict[str, object]:
    """Return the loads that the deploy files allow."""
    slots = DEPLOYED["queue"]["max_concurrent_dispatches"]
    worker = DEPLOYED["services"]["worker"]
    instances = worker["max_instances"] * worker["concurrency"]
    recovered = ROUND_SECONDS / ((GOLDEN["redispatch"]["rpcs"] + 1) * CALL_SECONDS)
    interval = DEPLOYED["budgets"]["reconcile_interval_seconds"]
    return {
        "seconds": RUN_SECONDS,
        "slots": slots,
        "slot_rate": _load(slots / RUN_SECONDS),
        "a_day": f"{slots / RUN_SECONDS * 86_400:,.0f}",
        "instances": instances,
        "instance_rate": _load(instances / RUN_SECONDS),
        "recovered": f"{recovered:,.0f}",
        "recovery_rate": _load(recovered / interval),
        "again": AGAIN_LIMIT,
    }


def _goal() -> dict[str, object]:
    """Return what the goal would take."""
    each, rows = sum(operations("job_run")), GOLDEN["job_run"]["job_writes"]
    steps = math.ceil(math.log(GOAL * each / RAMP_START) / math.log(RAMP_GROWTH))
    a_day = GOAL * 86_400 * price(operations("job_run"), "us-central1")
    return {
        "goal": f"{GOAL:,}",
        "goal_slots": f"{GOAL * RUN_SECONDS:,}",
        "goal_day": f"{a_day:,.0f}",
        "ramp_time": steps * RAMP_MINUTES,
        "concurrency_rate": _load(QUEUE_CONCURRENCY / RUN_SECONDS),
        "queues": math.ceil(GOAL * RUN_SECONDS / QUEUE_CONCURRENCY),
        "queue_rate": QUEUE_RATE,
        "shards": math.ceil(GOAL * rows / SEQUENTIAL),
    }


def page() -> str:
    """Return the page; an unknown name in its template is a fault."""
    template = (HERE / "scale.template.md").read_text("utf-8")
    return Template(template).substitute(figures())
