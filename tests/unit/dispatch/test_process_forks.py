"""A fork shares open files, and so their locks: a child must not outlive its parent's claims."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from listen_finalization.dispatch.processes import Election, ProcessRegistry

_FAMILY = """
import ctypes, os, signal, sys
from pathlib import Path
from listen_finalization.dispatch.processes import Election, ProcessRegistry

directory, fork, then = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
registry = ProcessRegistry(directory / "processes")
election = Election(directory / "dispatcher.lock")
assert election.campaign()
claim = registry.new_claim_id()
begun, begin = os.pipe()
if (ctypes.PyDLL(None).fork if fork == "unseen" else os.fork)() == 0:
    os.write(begin, b"x")
    while line := sys.stdin.readline():
        own = registry.new_claim_id() if fork == "mints first" else None
        dead = registry.dead(line.strip())
        print(dead, own or registry.new_claim_id(), election.leads, flush=True)
    os._exit(0)
os.read(begun, 1)
if then == "leaves":
    election.resign()
    registry.close()
print(claim, flush=True)
if then == "ends":
    sys.exit()
signal.pause()
"""


class Family:
    """A process that led and claimed, and its forked child, which lives until `close`."""

    def __init__(self, directory: Path, *, fork: str = "seen", then: str = "stays") -> None:
        self.parent = subprocess.Popen(
            [sys.executable, "-c", _FAMILY, str(directory), fork, then],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.claim = self._line()

    def _line(self) -> str:
        assert self.parent.stdout is not None
        return self.parent.stdout.readline().strip()

    def ask_child(self, claim_id: str) -> tuple[bool, str, bool]:
        """Return what the child holds of the claim, a claim of its own, and whether it leads."""
        assert self.parent.stdin is not None
        self.parent.stdin.write(f"{claim_id}\n")
        self.parent.stdin.flush()
        dead, own, leads = self._line().split()
        return dead == "True", own, leads == "True"

    def bury_parent(self, *, killed: bool = True) -> None:
        if killed:
            self.parent.kill()
        self.parent.wait(20)

    def end_child(self) -> None:
        """Let the child end, and wait until nobody has the family's output open."""
        assert self.parent.stdin is not None and self.parent.stdout is not None
        self.parent.stdin.close()
        self.parent.stdout.read()

    def close(self) -> None:
        self.bury_parent()
        self.end_child()
        if self.parent.stdout is not None:
            self.parent.stdout.close()


Raised = Callable[..., Family]


@pytest.fixture
def raised(tmp_path: Path) -> Iterator[Raised]:
    made: list[Family] = []

    def raise_one(**options: str) -> Family:
        made.append(Family(tmp_path, **options))
        return made[-1]

    yield raise_one
    for family in made:
        family.close()


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[ProcessRegistry]:
    made = ProcessRegistry(tmp_path / "processes")
    yield made
    made.close()


@pytest.fixture
def election(tmp_path: Path) -> Iterator[Election]:
    made = Election(tmp_path / "dispatcher.lock")
    yield made
    made.resign()


@pytest.mark.parametrize("then", ["stays", "ends"])
def test_a_forked_child_keeps_neither_the_lead_nor_the_life_of_a_parent_that_is_gone(
    then: str, raised: Raised, registry: ProcessRegistry, election: Election
) -> None:
    family = raised(then=then)
    family.bury_parent(killed=then == "stays")
    assert registry.dead(family.claim)
    assert election.campaign()
    dead, _, leads = family.ask_child(family.claim)  # it lives
    assert (dead, leads) == (True, False)


def test_a_forked_child_takes_neither_lead_nor_life_from_a_parent_that_lives(
    raised: Raised, registry: ProcessRegistry, election: Election
) -> None:
    family = raised()
    for _ in range(2):
        assert not registry.dead(family.claim)
        assert not election.campaign()
        dead, _, leads = family.ask_child(family.claim)
        assert (dead, leads) == (False, False)


@pytest.mark.parametrize("fork", ["seen", "unseen"])
def test_who_resigns_and_leaves_is_free_of_both_though_a_child_of_any_fork_lives(
    fork: str, raised: Raised, registry: ProcessRegistry, election: Election
) -> None:
    """An `unseen` fork is one by C code, of which Python's hooks know nothing."""
    family = raised(fork=fork, then="leaves")
    assert registry.dead(family.claim)
    assert election.campaign()
    assert family.parent.poll() is None


@pytest.mark.parametrize("fork", ["judges first", "mints first"])
def test_a_forked_child_is_a_process_of_its_own_before_it_judges_another_or_claims(
    fork: str, raised: Raised, registry: ProcessRegistry
) -> None:
    family = raised(fork=fork)
    dead, own, _ = family.ask_child(family.claim)
    assert (dead, own[:16] != family.claim[:16]) == (False, True)
    assert not registry.dead(own)
    family.bury_parent()
    dead, again, _ = family.ask_child(family.claim)
    assert (dead, again[:16]) == (True, own[:16])
    assert not registry.dead(own)
    family.end_child()
    assert registry.dead(own)
