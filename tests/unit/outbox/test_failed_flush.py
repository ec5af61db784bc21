"""A flush that the kernel refuses, for real: `strace` lets fsync and fdatasync fail with EIO."""

from __future__ import annotations

import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from listen_finalization.outbox.engine import CHECKPOINT_EVERY

from .stores import engine, names_on_disk, whole

PROGRAM = textwrap.dedent(
    """
    import sys
    from pathlib import Path
    from listen_finalization.domain.content import Segment
    from listen_finalization.domain.policy import Policy
    from listen_finalization.outbox.engine import SqliteEngine
    from listen_finalization.outbox.operations import Append

    def append(name):
        return Append("user", name, (Segment("s", "a", 0.0, 1.0, "words"),))

    store = SqliteEngine(Path(sys.argv[1]), Policy())
    for number in range(200):
        names = [f"c{number}-{index}" for index in range(int(sys.argv[2]))]
        for name, reply in zip(names, store.apply_batch([append(name) for name in names])):
            print(name, "ok" if reply == 1 else type(reply).__name__, flush=True)
        store.checkpoint()
        if store.broken:
            [reply] = store.apply_batch([append("late")])
            print("late", type(reply).__name__, flush=True)
            break
    """
)


def _run_under_strace(path: Path, size: int, first_failure: int) -> list[list[str]]:
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed: a refused flush is injected in SQLite's own code")
    inject = f"inject=fsync,fdatasync:error=EIO:when={first_failure}+"
    command = [strace, "-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync,fdatasync", "-e", inject]
    run = subprocess.run(
        [*command, sys.executable, "-c", PROGRAM, str(path), str(size)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if "ptrace" in run.stderr.lower():
        pytest.skip("this machine does not allow ptrace")
    assert run.returncode == 0, run.stderr
    return [line.split() for line in run.stdout.splitlines()]


@pytest.mark.parametrize("size", [1, 8])
def test_refused_flush_answers_nobody_and_breaks_the_store(size: int, tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    engine(path).close()
    told = _run_under_strace(path, size, first_failure=20)
    answered = {name for name, answer in told if answer == "ok"}
    refused = {answer for _, answer in told if answer != "ok"}
    assert answered
    assert refused == {"StoreBrokenError"}
    assert told[-1] == ["late", "StoreBrokenError"]
    assert answered <= names_on_disk(path)
    assert "late" not in names_on_disk(path)
    assert whole(path)


def test_refused_flush_of_a_checkpoint_breaks_the_store(tmp_path: Path) -> None:
    """Commits flush first; the first number that spares all of them meets the checkpoint's."""
    for first_failure in range(4, 16):
        path = tmp_path / f"store-{first_failure}.db"
        engine(path).close()
        told = _run_under_strace(path, 64, first_failure)
        answered = {name for name, answer in told if answer == "ok"}
        assert told[-1] == ["late", "StoreBrokenError"]
        assert answered <= names_on_disk(path)
        if len(answered) == CHECKPOINT_EVERY:
            return
    raise AssertionError
