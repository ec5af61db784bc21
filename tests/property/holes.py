"""Violations that the machine is known to have: a strict list, to be emptied by fixes.

A key is a broken rule and the verb (or event) of the step that broke it. An entry that the
exploration no longer meets fails `test_exploration.py`, so that it goes with its fix.
"""

from __future__ import annotations

KNOWN: dict[tuple[str, str], str] = {
    ("accepted_finalize_is_read", "admit"): "H10: newer content of a run that discarded",
    ("repeat_gives_the_same_answer", "admit"): "H12: an admission that fences",
    ("at_most_one_job_is_open", "admit"): "H11: a free revision below an open one",
    ("repeat_meets_the_same_job", "replay"): "H13: a dead letter that was marked since",
}
