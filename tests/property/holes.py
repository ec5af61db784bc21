"""Violations that the machine is known to have: a strict list, to be emptied by fixes.

A key is a broken rule and the verb (or event) of the step that broke it. An entry that the
exploration no longer meets fails `test_exploration.py`, so that it goes with its fix.
"""

from __future__ import annotations

KNOWN: dict[tuple[str, str], str] = {
    ("no_open_job_is_left_behind_a_purged_revision", "admit"): "H11: a free id below an open row",
}
