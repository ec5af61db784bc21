"""The words of `explain`: every reason with its sentence, every failure code with its advice."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from listen_finalization.domain.codes import FailureCode


class Reason(StrEnum):
    """Why a job stands where it stands."""

    NOBODY_DISPATCHES = "nobody_dispatches"
    DUE = "due"
    SCHEDULED = "scheduled"
    BACKING_OFF = "backing_off"
    ENVIRONMENT_WAIT = "environment_wait"
    BUDGET_SPENT = "budget_spent"
    ATTEMPTS_USED = "attempts_used"
    KEYS_PRESENTED = "keys_presented"
    SESSION_OVER = "session_over"
    RUNNING = "running"
    LEASE_EXPIRED = "lease_expired"
    OWNER_DEAD = "owner_dead"
    LAST_ATTEMPT = "last_attempt"
    KEYS_NEEDED = "keys_needed"
    KEYS_REFUSED = "keys_refused"
    NEVER_PLATFORM_KEYS = "never_platform_keys"
    BURIED = "buried"
    GIVEN_UP = "given_up"
    REPLAY_ONLY = "replay_only"
    DONE = "done"
    DISCARDED = "discarded"
    FENCED = "fenced"
    ENDED_GIVEN_UP = "ended_given_up"
    ENDED = "ended"
    DELIVERIES_DROPPED = "deliveries_dropped"
    REPLAYED = "replayed"
    GIVEN_BACK = "given_back"
    SHORTENED = "shortened"


# fmt: off
SENTENCES: Mapping[Reason, str] = {
    Reason.NOBODY_DISPATCHES:
        "No process dispatches for this store; nothing moves until one is started.",
    Reason.DUE: "It is due since {at} and waits for a free worker.",
    Reason.SCHEDULED: "It is queued for {at}.",
    Reason.BACKING_OFF: "The last attempt ended with {code}; the next one is due {at}.",
    Reason.ENVIRONMENT_WAIT:
        "The environment was at fault ({code}), which costs no attempt; it is due again {at}.",
    Reason.BUDGET_SPENT: "All {count} attempts of its budget are used: the next hand-over ends it.",
    Reason.ATTEMPTS_USED: "Attempts of its budget that began: {count}.",
    Reason.KEYS_PRESENTED:
        "The user's keys were presented; it waits for that session until {at}.",
    Reason.SESSION_OVER:
        "The session that presented the user's keys did not take it by {at}: it is being blocked.",
    Reason.RUNNING: "A live worker owns it; the lease runs until {at} and is renewed meanwhile.",
    Reason.LEASE_EXPIRED:
        "Its lease ended {at}; the owner may still complete it until another worker takes it over.",
    Reason.OWNER_DEAD: "The process that owned it is dead; it is taken over at once.",
    Reason.LAST_ATTEMPT: "This is attempt {count}, the last of its budget.",
    Reason.KEYS_NEEDED: "It needs the user's own provider keys, which are nowhere stored.",
    Reason.KEYS_REFUSED: "The provider refused the user's own keys; it waits for valid ones.",
    Reason.NEVER_PLATFORM_KEYS:
        "It never runs on the platform's keys: the user must open a live session with keys.",
    Reason.BURIED: "It was dead-lettered {at} after {count} attempts with {code}.",
    Reason.GIVEN_UP: "It waited for the user's keys longer than allowed and was given up {at}.",
    Reason.REPLAY_ONLY:
        "Only an operator's replay opens it again; this version has no command for that yet.",
    Reason.DONE: "It is completed since {at}; the record is on the conversation.",
    Reason.DISCARDED:
        "It is completed since {at}; the conversation was found not worth keeping and discarded.",
    Reason.FENCED:
        "It was ended {at} without writing: the conversation was deleted, discarded or taken over.",
    Reason.ENDED_GIVEN_UP: "It was given up {at}.",
    Reason.ENDED: "It ended {at}.",
    Reason.DELIVERIES_DROPPED:
        "Deliveries dropped with {code}: {count}; the record itself is not affected.",
    Reason.REPLAYED: "Times an operator replayed it: {count}.",
    Reason.GIVEN_BACK: "Attempts given back in this budget (shutdown, environment, keys): {count}.",
    Reason.SHORTENED: "Its record was shortened to fit its bounds.",
}
"""What is said of each reason; `{at}`, `{code}` and `{count}` are those of the job."""

ADVICE: Mapping[FailureCode, str] = {
    FailureCode.WORKER_LOST: "workers died in it: look for kills and memory limits at those times",
    FailureCode.RUN_TIMEOUT: "a run took longer than HTTP_LISTEN_FINALIZATION_RUN_TIMEOUT",
    FailureCode.PROCESSOR_ERROR: "the processor raised: its class is in the log (step_fault)",
    FailureCode.PROCESSOR_INVALID_RESULT: "the processor returned what is no record: correct it",
    FailureCode.PROVIDER_ERROR: "the provider failed for this conversation alone",
    FailureCode.PROVIDER_REFUSED: "the provider refused this conversation's content",
    FailureCode.DELIVERY_FAILED: "a destination did not take the delivery",
    FailureCode.CONTENT_UNREADABLE: "the stored conversation cannot be read",
    FailureCode.ENVIRONMENT_PROVIDER: "the provider was unreachable: look at its status",
    FailureCode.ENVIRONMENT_CREDENTIALS: "the provider refused the platform's key: replace it",
    FailureCode.ENVIRONMENT_CONFIGURATION: "the processor's configuration cannot work: correct it",
    FailureCode.ENVIRONMENT_STORE: "the store failed during the run: look at disk and log",
    FailureCode.ENVIRONMENT_SLOTS: "all workers were held by steps that outlived their runs",
    FailureCode.LANE_PAUSED: "dispatch was paused by an operator",
    FailureCode.SHUTDOWN: "its process was shut down; the attempt was given back",
    FailureCode.SESSION_LOST: "the live session that held the user's keys was lost",
    FailureCode.KEYS_REJECTED: "the provider refused the user's keys; only the user can help",
    FailureCode.KEYS_MISSING: "the user's keys were needed and absent; only the user can help",
    FailureCode.EVICTED: "an operator took the lease away from its worker",
    FailureCode.ABANDONED: "it was older than LISTEN_FINALIZATION_BYOK_ABANDON_DAYS",
}
"""What a failure code asks of the operator."""
# fmt: on
