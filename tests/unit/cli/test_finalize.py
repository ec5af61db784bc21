"""`finalize` in a stack of this process: many files, one document, no file stops another."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from listen_finalization.cli.exit_codes import ExitCode
from listen_finalization.cli.place import kept_or_temporary

from .conftest import EXAMPLES, Ran
from .processors import SECRET

Cli = Callable[..., Ran]
TWO = (EXAMPLES / "standup.vtt", EXAMPLES / "doctor-visit.json")
KEYS = {
    *("file", "conversation_id", "job_id", "status", "outcome", "failure_code", "discarded"),
    *("title", "overview", "category", "action_items", "events", "memories"),
    *("attempts", "seconds", "error"),
}


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep temporary data directories where a test can see that they are gone."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


def talk(path: Path, *lines: str, key: str | None = None) -> Path:
    segments = [{"speaker": "Ada", "text": line} for line in lines]
    document: dict[str, Any] = {"segments": segments}
    path.write_text(json.dumps(document if key is None else {**document, "id": key}))
    return path


def documents(ran: Ran) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(ran.out)
    assert ran.out.isascii()
    assert all(set(one) == KEYS for one in found)
    return found


def test_two_examples_become_two_records(cli: Cli, temporary: Path) -> None:
    ran = cli("finalize", *TWO, "-o", "json")
    found = documents(ran)
    assert ran.code == ExitCode.OK
    assert [one["file"] for one in found] == [str(path) for path in TWO]
    for one in found:
        assert (one["status"], one["outcome"], one["error"]) == ("completed", "success", None)
        assert one["attempts"] == 1
        assert all(
            one[key] for key in ("title", "overview", "category", "action_items", "memories")
        )
    assert list(temporary.iterdir()) == []


def test_progress_tells_every_stage_of_every_file_on_stderr(cli: Cli) -> None:
    ran = cli("finalize", *TWO)
    for path in TWO:
        told = [
            line.removeprefix(f"{path}: ") for line in ran.err.splitlines() if str(path) in line
        ]
        assert told == ["stored", "admitted", "claimed", "enriched", "memories", "fanout", "done"]
    assert len(ran.out.splitlines()) == 3


def test_one_bad_file_stops_no_other(cli: Cli, tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text('{"segments": [')
    ran = cli("finalize", broken, TWO[0], tmp_path / "missing.vtt", "-o", "json")
    assert ran.code == ExitCode.USAGE
    assert [one["status"] for one in documents(ran)] == [None, "completed", None]
    assert [one["error"] and one["error"]["code"] for one in documents(ran)] == [
        *("transcript_error", None, "transcript_error"),
    ]


def test_a_file_given_twice_is_finalized_once(cli: Cli, tmp_path: Path) -> None:
    link = tmp_path / "other.vtt"
    link.symlink_to(TWO[0])
    ran = cli("finalize", TWO[0], TWO[0], link, "-o", "json")
    assert ran.code == ExitCode.OK
    assert len(documents(ran)) == 1
    assert ran.err.count("was given twice") == 2


def test_one_conversation_in_two_files_is_refused_for_both(cli: Cli, tmp_path: Path) -> None:
    first = talk(tmp_path / "one.json", "We decided to ship on Monday.", key="same")
    second = talk(tmp_path / "two.json", "We decided to wait until Friday.", key="same")
    ran = cli("finalize", first, TWO[0], second, "-o", "json")
    assert ran.code == ExitCode.USAGE
    codes = [one["error"] and one["error"]["code"] for one in documents(ran)]
    assert codes == ["same_conversation", None, "same_conversation"]
    assert f"{first}: conversation same is in another file too" in ran.err


def test_newer_content_in_a_kept_directory_is_the_next_revision(cli: Cli, tmp_path: Path) -> None:
    data, path = tmp_path / "data", tmp_path / "plan.json"
    talk(path, "The goal for this week is to ship the new payment page to all customers.")
    first = documents(cli("finalize", path, "--data", data, "-o", "json"))[0]
    again = documents(cli("finalize", path, "--data", data, "-o", "json"))[0]
    talk(path, "The goal for this week is to repair the invoice email for all customers.")
    newer = documents(cli("finalize", path, "--data", data, "-o", "json"))[0]
    assert again["job_id"] == first["job_id"]
    assert newer["job_id"] != first["job_id"]
    assert "invoice email" in newer["overview"]
    listed = json.loads(cli("jobs", "list", "--data", data, "-o", "json").out)["jobs"]
    assert [job["finalization_revision"] for job in listed] == [2, 1]


def test_a_job_that_dies_is_unfinished_and_told_by_its_code(cli: Cli, tmp_path: Path) -> None:
    env = {
        "LISTEN_FINALIZATION_PROCESSOR": "cli.processors:Failing",
        "LISTEN_FINALIZATION_TASKS_MAX_ATTEMPTS": "1",
    }
    ran = cli("finalize", TWO[0], "-o", "json", env=env)
    (one,) = documents(ran)
    assert ran.code == ExitCode.UNFINISHED
    assert (one["status"], one["outcome"]) == ("dead_letter", "failed")
    assert one["failure_code"] == "processor_error"
    assert f"{TWO[0]}: failed (processor_error)" in ran.err
    assert SECRET not in ran.out + ran.err


def test_a_job_that_is_not_over_in_time_is_unfinished(cli: Cli) -> None:
    env = {
        "LISTEN_FINALIZATION_PROCESSOR": "cli.processors:Slow",
        "LISTEN_FINALIZATION_SHUTDOWN_GRACE_SECONDS": "1",
    }
    ran = cli("finalize", TWO[0], "--timeout", "1", "-o", "json", env=env)
    assert ran.code == ExitCode.UNFINISHED
    (one,) = documents(ran)
    assert one["error"]["code"] == "timeout"
    assert one["status"] in (None, "queued", "leased")


def test_a_discarded_conversation_is_completed_and_takes_no_more(cli: Cli, tmp_path: Path) -> None:
    env = {"LISTEN_FINALIZATION_PROCESSOR": "cli.processors:Discarding"}
    data = tmp_path / "data"
    ran = cli("finalize", TWO[0], "--data", data, env=env)
    assert ran.code == ExitCode.OK
    assert "(discarded)" in ran.out
    again = cli("finalize", TWO[0], "--data", data, "-o", "json", env=env)
    assert again.code == ExitCode.REFUSED
    assert documents(again)[0]["error"]["code"] == "conversation_closed"


def test_content_that_would_steer_a_terminal_is_shown_harmlessly(cli: Cli) -> None:
    env = {"LISTEN_FINALIZATION_PROCESSOR": "cli.processors:Discarding"}
    for output in ("table", "json"):
        ran = cli("finalize", TWO[0], "--force-process", "-o", output, env=env)
        assert ran.code == ExitCode.OK
        assert not {"\x1b", "\x07"} & set(ran.out + ran.err)


def test_a_transcript_without_words_is_bad_input(cli: Cli, tmp_path: Path) -> None:
    ran = cli("finalize", talk(tmp_path / "blank.json", " "), "-o", "json")
    assert ran.code == ExitCode.USAGE
    assert documents(ran)[0]["error"]["code"] == "conversation_empty"


def test_many_files_at_once_all_end(cli: Cli, tmp_path: Path) -> None:
    said = "The goal of week {} is to ship the new payment page to all of our customers."
    paths = [talk(tmp_path / f"talk-{n}.json", said.format(n)) for n in range(80)]
    ran = cli("finalize", *paths, "--force-process", "-o", "json")
    assert ran.code == ExitCode.OK
    assert [one["conversation_id"] for one in documents(ran)] == [path.stem for path in paths]


def test_verbose_writes_json_logs_without_content(cli: Cli) -> None:
    ran = cli("finalize", TWO[0], "-v", "-o", "json")
    events = [json.loads(line) for line in ran.err.splitlines() if line.startswith("{")]
    assert {"job_admitted", "job_claimed", "job_completed"} <= {e.get("event") for e in events}
    assert "payment page" not in ran.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("--url", "http://127.0.0.1:9"),
        ("--url", "http://127.0.0.1:9", "--token", "t", "--data", "d"),
        ("--url", "http://127.0.0.1:9", "--token", "t", "--uid", "u"),
        ("--token", "t"),
        ("--url", "ftp://x", "--token", "t"),
        ("--url", "http://user:secret@x", "--token", "t"),
        ("--url", "http://x:0", "--token", "t"),
        ("--url", "http://x:99999", "--token", "t"),
        ("--uid", "a/b"),
        ("--timeout", "0"),
        ("--timeout", "nan"),
    ],
)
def test_options_that_do_not_go_together_are_refused(arguments: tuple[str, ...], cli: Cli) -> None:
    ran = cli("finalize", TWO[0], *arguments)
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert "secret" not in ran.err


def test_a_data_directory_that_cannot_be_made_is_told(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    ran = cli("finalize", TWO[0], "--data", tmp_path / "file" / "data")
    assert ran.code == ExitCode.UNAVAILABLE
    assert "Check that its directory exists and is writable" in ran.err


def test_a_temporary_directory_is_removed_after_a_fault(temporary: Path) -> None:
    with pytest.raises(ValueError, match="x"), kept_or_temporary(None) as directory:
        (Path(directory) / "listen.db").write_text("content")
        raise ValueError("x")
    assert list(temporary.iterdir()) == []


def test_demo_shows_records_and_histories(cli: Cli, temporary: Path) -> None:
    ran = cli("demo", *TWO)
    assert ran.code == ExitCode.OK
    assert ran.out.count("Action items") == 2
    assert ran.out.count("complete  leased  completed") == 2
    assert list(temporary.iterdir()) == []


def test_demo_of_a_missing_file_is_told(cli: Cli, tmp_path: Path) -> None:
    ran = cli("demo", tmp_path / "nothing.vtt")
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
