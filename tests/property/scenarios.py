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
    ticks=(1, 4),
)
RELEASES = Scenario(
    "releases, paused lane, postponed rows, clock set back",
    _acts("admit claim run release pause handover postpone crash reconcile foreign"),
    POLICY,
    (started(),),
    revisions=1,
    slots=1,
    generation=4,
    epoch=3,
    ticks=(1, 4, -1),
)
BYOK = Scenario(
    "BYOK and its sessions",
    _acts("admit admit_keys claim claim_keys keys run fail release crash reconcile evict abandon "
          "replay delete dead"),
    replace(POLICY, abandon_after=8),
    (started(), started(requires_byok=True)),
    revisions=1,
    slots=1,
    generation=4,
    epoch=2,
)
OPERATOR = Scenario(
    "operator",
    _acts("admit claim run fail crash reconcile evict replay requeue unsure doubt"),
    ONE_TRY,
    (started(),),
    revisions=1,
    generation=4,
    epoch=3,
)
CONTENT = Scenario(
    "content and revisions",
    _acts("admit admit_keys force claim claim_keys run fail crash reconcile append mark retention "
          "discard_run keys evict"),
    ONE_TRY,
    (started(), started(has_content=False), started(has_room=False)),
    revisions=3,
    slots=1,
    version=3,
    generation=2,
    epoch=2,
    ticks=(4, 16),
)
LANES = Scenario(
    "other lanes",
    _acts("admit adopt claim run fail release crash reconcile delete gone remade discard other "
          "again elsewhere back account retention evict replay"),
    ONE_TRY,
    (started(), None),
    revisions=2,
    slots=1,
    generation=2,
    epoch=2,
    ticks=(4, 16),
)
EFFECTS = Scenario(
    "effects, chunks and resends",
    _acts("admit claim run fail crash reconcile chunks bare resend delete again"),
    POLICY,
    (started(),),
    revisions=1,
    slots=1,
    generation=2,
    epoch=2,
    destinations=2,
)

CI = (WORKERS, RELEASES, BYOK, OPERATOR, CONTENT, LANES, EFFECTS)
FULL = CI
