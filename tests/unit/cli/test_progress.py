"""Progress: each change once in lines, a bounded table where a person looks."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from listen_finalization.cli.progress import SHOWN, Lines, Live, progress_of
from listen_finalization.cli.stages import Stage, over, reached, succeeded
from listen_finalization.http.models import FinalizationAnswer

from .test_remote import STANDING

FILE = Path("talk.vtt")


def answer(**changed: object) -> FinalizationAnswer:
    return FinalizationAnswer.model_validate({**STANDING, **changed})


def steps(*states: str) -> list[dict[str, str]]:
    names = ("enrich", "memories", "fanout")
    return [{"step": n, "state": s} for n, s in zip(names, states, strict=True)]


def test_stages_follow_the_ledger() -> None:
    waiting = answer(status="queued", attempt_count=0, steps=steps(*["pending"] * 3))
    running = answer(steps=steps("done", "pending", "pending"))
    done = answer(
        status="completed", terminal=True, outcome="success", steps=steps("done", "done", "dropped")
    )
    assert reached(waiting) == (Stage.ADMITTED,)
    assert reached(running) == (Stage.ADMITTED, Stage.CLAIMED, Stage.ENRICHED)
    assert reached(done)[-4:] == (Stage.ENRICHED, Stage.MEMORIES, Stage.FANOUT, Stage.DONE)


@pytest.mark.parametrize(
    ("standing", "ended", "well"),
    [
        ({"status": "queued"}, False, False),
        ({"status": "unowned"}, False, False),
        ({"status": "blocked_byok"}, True, False),
        ({"status": "dead_letter", "terminal": True, "outcome": "failed"}, True, False),
        ({"status": "completed", "terminal": True, "outcome": "fenced"}, True, False),
        ({"status": "completed", "terminal": True, "outcome": "success"}, True, True),
    ],
)
def test_only_a_record_is_a_success_and_nobody_waits_for_keys(
    standing: dict[str, object], ended: bool, well: bool
) -> None:
    found = answer(**standing)
    assert (over(found), succeeded(found)) == (ended, well)
    assert (Stage.DONE in reached(found)) is well


def test_a_failed_attempt_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines()
    for count in (1, 1, 2):
        lines.attempt(FILE, count, "provider_error")
    lines.attempt(FILE, 2, None)
    assert capsys.readouterr().err.splitlines() == [
        "talk.vtt: attempt 1 ended with provider_error",
        "talk.vtt: attempt 2 ended with provider_error",
    ]


def test_the_live_table_shows_open_files_first_and_no_more_than_fit() -> None:
    from rich.console import Console

    paths = [Path(f"talk-{n}\x1b[31m.vtt") for n in range(3 * SHOWN)]
    live = Live(paths)
    for path in paths[: 2 * SHOWN]:
        live.note(path, Stage.DONE)
    live.note(paths[-1], Stage.FAILED, "provider_error")
    live.attempt(paths[-2], 3, "provider_error")
    screen = Console(width=100, record=True, file=io.StringIO())
    screen.print(live)
    text = screen.export_text()
    assert f"{2 * SHOWN + 1} of {3 * SHOWN} files" in text
    assert len(text.splitlines()) == SHOWN + 1
    assert "attempt 3: provider_error" in text
    assert "\x1b" not in text


def test_without_a_terminal_progress_is_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_of([FILE], plain=False) as progress:
        progress.note(FILE, Stage.FAILED, "timeout")
    assert capsys.readouterr().err == "talk.vtt: failed (timeout)\n"
