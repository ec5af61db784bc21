"""The transition table as data: `decide` obeys it, all that shows states reads it."""

from __future__ import annotations

from dataclasses import dataclass

from listen_finalization.domain.codes import OPEN, Status, Verb

Q, L, C, D, B = (
    Status.QUEUED,
    Status.LEASED,
    Status.COMPLETED,
    Status.DEAD_LETTER,
    Status.BLOCKED_BYOK,
)


@dataclass(frozen=True, slots=True)
class Transition:
    """One verb: from which statuses to which, under which guards, and what else it writes.

    `sources` holds None where no row may exist yet; `targets` holds None where the row goes. A
    verb that `keeps` the status joins each source with itself alone.
    """

    verb: Verb
    sources: frozenset[Status | None]
    targets: frozenset[Status | None]
    callers: str
    guards: tuple[str, ...]
    writes: str
    keeps: bool = False

    @property
    def edges(self) -> frozenset[tuple[Status | None, Status | None]]:
        """Every change of status that the verb may make."""
        pairs = ((a, b) for a in self.sources for b in self.targets)
        return frozenset((a, b) for a, b in pairs if a is b or not self.keeps)


def _row(
    verb: Verb,
    sources: tuple[Status | None, ...],
    targets: tuple[Status | None, ...],
    callers: str,
    guards: tuple[str, ...],
    writes: str,
    *,
    keeps: bool = False,
) -> tuple[Verb, Transition]:
    made = Transition(verb, frozenset(sources), frozenset(targets), callers, guards, writes, keeps)
    return verb, made


TABLE: dict[Verb, Transition] = dict(
    [
        _row(
            Verb.ADMIT,
            (None, *sorted(OPEN)),
            (Q, B),
            "customer route, listen, sweep",
            ("admissible",),
            "conversation processing with job id, revision and calendar context; due after one "
            "hand-over, or the session limit with keys in hand; an open row found at the id is "
            "re-attached with generation+1 and a new budget",
        ),
        _row(
            Verb.CLAIM,
            (Q, L),
            (L, D, C),
            "worker, pusher",
            (
                "claim_unused",
                "not_blocked",
                "generation_current",
                "lease_free",
                "keys_present",
                "conversation_ours",
                "budget_left",
            ),
            "epoch+1, claim id, attempt+1, hand-overs 0, content version, lease end, due = lease "
            "end; budget spent: dead letter, or completed when only deliveries are open",
        ),
        _row(
            Verb.CHECKPOINT,
            (L,),
            (L,),
            "owner",
            ("owner", "conversation_ours"),
            "lease end, due; effects, step results and memories; no history",
        ),
        _row(
            Verb.COMPLETE,
            (L,),
            (C,),
            "owner",
            ("owner", "conversation_ours", "deliveries_settled"),
            "conversation completed with the stored record; revision+1 admitted when newer "
            "content is wanted",
        ),
        _row(
            Verb.FAIL,
            (L,),
            (Q, D, C),
            "owner",
            ("owner", "conversation_ours", "attempts_left"),
            "failure code, due by back-off; on the final attempt a dead letter (conversation "
            "failed and discarded), or completed when only deliveries are open",
        ),
        _row(
            Verb.FENCE,
            tuple(sorted(OPEN)),
            (C,),
            "owner, or anybody where nobody owns the row",
            ("conversation_not_ours", "unowned"),
            "outcome fenced; nothing on the conversation",
        ),
        _row(
            Verb.RELEASE,
            (L,),
            (Q, B),
            "owner",
            ("owner", "conversation_ours", "releases_left"),
            "attempt given back, releases+1; environment: generation+1 and due after the delay",
        ),
        _row(
            Verb.PRESENT_KEYS,
            (B, Q),
            (Q,),
            "listen",
            ("identity", "conversation_ours"),
            "due = session limit; handed to nobody else",
        ),
        _row(
            Verb.PARK,
            (Q, L),
            (B, D, C),
            "reconciler",
            ("generation_current", "byok", "due", "lease_free", "conversation_ours", "budget_left"),
            "generation+1, due removed; budget spent: dead letter, or completed",
        ),
        _row(
            Verb.REDISPATCH,
            (Q, L),
            (Q, D, C),
            "reconciler, operator, worker before its claim",
            (
                "generation_current",
                "not_byok",
                "due",
                "lease_free",
                "conversation_ours",
                "budget_left",
            ),
            "generation+1, hand-overs+1 (not for a paused lane), due after one hand-over",
        ),
        _row(
            Verb.POSTPONE,
            (Q, L),
            (Q, L),
            "dispatcher, reconciler",
            ("generation_current", "lease_free", "due_as_seen"),
            "due time only; no history",
            keeps=True,
        ),
        _row(
            Verb.EVICT,
            (L,),
            (Q, B),
            "operator",
            ("generation_current", "epoch_current", "conversation_ours"),
            "generation+1, due now; the attempt stays counted",
        ),
        _row(
            Verb.REPLAY,
            (D,),
            (Q, B),
            "operator",
            ("generation_current", "conversation_replayable"),
            "generation+1, new budget, replay_count+1, due; conversation processing and not "
            "discarded",
        ),
        _row(
            Verb.RESEND,
            (C,),
            (C,),
            "operator",
            ("delivery_dropped", "conversation_exists"),
            "the delivery sent once more with the same id, its result noted",
        ),
        _row(
            Verb.ABANDON,
            (B,),
            (D, C),
            "sweep",
            ("old_enough", "conversation_ours"),
            "outcome abandoned; conversation failed and discarded; completed when only "
            "deliveries are open",
        ),
        _row(
            Verb.PURGE,
            tuple(Status),
            (None,),
            "account deletion; retention of completed rows",
            ("purgeable",),
            "row and step results gone",
        ),
    ]
)
