"""The bounded worlds that are explored: several small ones with a subject each."""

from __future__ import annotations

from dataclasses import replace

from listen_finalization.domain.policy import Policy

from .world import Scenario, started

POLICY = Policy(
    lease=2,
    max_attempts=2,
    handover=4,
    handover_limit=8,
    retry_floor=4,
    backoff=1,
    backoff_limit=4,
    session_limit=4,
    environment_release_limit=2,
    resend_limit=2,
    abandon_after=None,
    retention=16,
)
ONE_TRY = replace(POLICY, max_attempts=1)


def _acts(words: str) -> frozenset[str]:
    return frozenset(words.split())


WORKERS = Scenario(
    "two workers and a reconciler",
    _acts("admit claim run fail crash unsure reconcile dead"),
    POLICY,
    (started(),),
    revisions=1,
    generation=2,
    ticks=(1, 4),
)
RELEASES = Scenario(
    "releases, paused lane, postponed rows, clock set back",
    _acts("admit claim run fail release pause handover postpone crash reconcile foreign"),
    POLICY,
    (started(),),
    revisions=1,
    slots=1,
    generation=3,
    epoch=3,
    ticks=(4, -4),
)
BYOK = Scenario(
    "BYOK and its sessions",
    _acts(
        "admit admit_keys claim claim_keys keys run fail release crash reconcile evict abandon "
        "replay delete dead mark"
    ),
    replace(ONE_TRY, abandon_after=4),
    (started(), started(requires_byok=True)),
    revisions=1,
    slots=1,
    generation=3,
    epoch=2,
    ticks=(4,),
)
OPERATOR = Scenario(
    "operator",
    _acts("admit claim run fail crash reconcile evict replay requeue unsure doubt"),
    ONE_TRY,
    (started(),),
    revisions=1,
    generation=3,
    epoch=2,
    ticks=(4,),
)
CONTENT = Scenario(
    "content and revisions",
    _acts("admit force claim run fail crash reconcile append retention discard_run evict"),
    ONE_TRY,
    (started(), started(has_content=False), started(has_room=False)),
    revisions=3,
    slots=1,
    version=3,
    generation=2,
    epoch=1,
    ticks=(16,),
)
WISHES = Scenario(
    "wishes under BYOK",
    _acts("admit admit_keys claim claim_keys run crash reconcile append mark keys"),
    ONE_TRY,
    (started(),),
    revisions=2,
    slots=1,
    generation=2,
    epoch=1,
    ticks=(4,),
)
RESUMED = Scenario(
    "sessions that resume",
    _acts(
        "admit admit_keys force claim claim_keys run release crash reconcile again mark "
        "account abandon"
    ),
    POLICY,
    (started(), started(requires_byok=True)),
    revisions=1,
    slots=1,
    generation=3,
    epoch=2,
    ticks=(4,),
)
LANES = Scenario(
    "other lanes",
    _acts(
        "admit adopt claim run fail release crash reconcile delete gone remade discard other "
        "again elsewhere back account evict replay"
    ),
    ONE_TRY,
    (started(), None),
    revisions=2,
    slots=1,
    generation=2,
    epoch=1,
    ticks=(16,),
)
EFFECTS = Scenario(
    "effects, chunks and resends",
    _acts("admit claim run fail crash chunks bare resend delete again"),
    ONE_TRY,
    (started(),),
    revisions=1,
    slots=1,
    generation=2,
    epoch=2,
    destinations=2,
    ticks=(4,),
)

CI = (
    (WORKERS, 25_000),
    (RELEASES, 10_000),
    (BYOK, 10_000),
    (OPERATOR, 25_000),
    (CONTENT, 8_000),
    (WISHES, 6_000),
    (RESUMED, 5_000),
    (LANES, 8_000),
    (EFFECTS, 12_000),
)
"""Scenarios of the short form, each with the number of states after which it stops."""

_PAIRS = (BYOK, CONTENT, RESUMED, LANES, EFFECTS)
_WIDER = replace(
    RELEASES, name="releases with a finer clock", generation=4, ticks=(1, 4, -4), slots=2
)

FULL = (
    *((scenario, 150_000) for scenario, _ in CI),
    (_WIDER, 80_000),
    *((replace(s, name=f"{s.name}, two workers", slots=2), 60_000) for s in _PAIRS),
)
"""The long form: the same worlds to their bounds, a finer clock, and second workers."""
