"""Locks that the kernel frees at death: who lives, and who leads."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from listen_finalization.dispatch.processes import Election, ProcessRegistry

_HOLDER = """
import sys, time
from pathlib import Path
from listen_finalization.dispatch.processes import Election, ProcessRegistry
registry = ProcessRegistry(Path(sys.argv[1]) / "processes")
election = Election(Path(sys.argv[1]) / "dispatcher.lock")
print(registry.new_claim_id(), election.campaign(), flush=True)
time.sleep(60)
"""


def test_a_claim_id_is_thirty_two_hex_digits_that_begin_with_the_process(tmp_path: Path) -> None:
    registry = ProcessRegistry(tmp_path)
    first, second = registry.new_claim_id(), registry.new_claim_id()
    assert len(bytes.fromhex(first)) == 16
    assert first[:16] == second[:16] and first != second
    registry.close()


def test_only_a_process_that_let_its_lock_go_is_dead(tmp_path: Path) -> None:
    mine, other = ProcessRegistry(tmp_path), ProcessRegistry(tmp_path)
    claim = other.new_claim_id()
    assert not mine.dead(claim)
    assert not mine.dead(mine.new_claim_id())
    assert mine.prune() == 0
    other.close()
    assert mine.dead(claim)
    assert mine.dead("0" * 32)  # its lock file is gone
    assert not mine.dead("short")
    mine.close()


def test_a_killed_process_is_dead_and_its_lead_is_free_at_once(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    claim, led = holder.stdout.readline().split()
    registry = ProcessRegistry(tmp_path / "processes")
    election = Election(tmp_path / "dispatcher.lock")
    assert (led, registry.dead(claim), election.campaign()) == ("True", False, False)
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    assert registry.dead(claim)
    assert [election.campaign(), election.leads] == [True, True]
    assert registry.prune() == 1
    assert registry.dead(claim)
    election.resign()
    election.resign()
    assert [election.leads] == [False]
    registry.close()
    holder.stdout.close()
