"""The closed vocabularies: every word that a row, label, log event or answer may hold."""

from __future__ import annotations

from enum import StrEnum


class Status(StrEnum):
    """Where a job stands. `completed` and `dead_letter` are terminal."""

    QUEUED = "queued"
    LEASED = "leased"
    COMPLETED = "completed"
    DEAD_LETTER = "dead_letter"
    BLOCKED_BYOK = "blocked_byok"

    @property
    def terminal(self) -> bool:
        return self in TERMINAL


TERMINAL = frozenset({Status.COMPLETED, Status.DEAD_LETTER})
OPEN = frozenset(Status) - TERMINAL


class ConversationStatus(StrEnum):
    """Where a conversation stands. `other` stands for any word of the application's own."""

    IN_PROGRESS = "in_progress"
    PROCESSING = "processing"
    COMPLETED = "completed"
    FAILED = "failed"
    OTHER = "other"


class Verb(StrEnum):
    """What can be done to a job; `table.TABLE` says from where, to where and when."""

    ADMIT = "admit"
    CLAIM = "claim"
    CHECKPOINT = "checkpoint"
    COMPLETE = "complete"
    FAIL = "fail"
    FENCE = "fence"
    RELEASE = "release"
    PRESENT_KEYS = "present_keys"
    PARK = "park"
    REDISPATCH = "redispatch"
    POSTPONE = "postpone"
    EVICT = "evict"
    REPLAY = "replay"
    RESEND = "resend"
    ABANDON = "abandon"
    PURGE = "purge"


class Outcome(StrEnum):
    """How a terminal job ended. `fenced`: the conversation was gone or no longer ours."""

    SUCCESS = "success"
    FAILED = "failed"
    FENCED = "fenced"
    ABANDONED = "abandoned"


class Actor(StrEnum):
    """Which kind of caller moved the job; never who."""

    CUSTOMER = "customer"
    LISTEN = "listen"
    WORKER = "worker"
    PUSHER = "pusher"
    DISPATCHER = "dispatcher"
    RECONCILER = "reconciler"
    SWEEP = "sweep"
    OPERATOR = "operator"


class FailureCode(StrEnum):
    """Why an attempt did not finish. The whole list; exception text is never stored."""

    WORKER_LOST = "worker_lost"
    RUN_TIMEOUT = "run_timeout"
    PROCESSOR_ERROR = "processor_error"
    PROCESSOR_INVALID_RESULT = "processor_invalid_result"
    PROVIDER_ERROR = "provider_error"
    PROVIDER_REFUSED = "provider_refused"
    DELIVERY_FAILED = "delivery_failed"
    CONTENT_UNREADABLE = "content_unreadable"
    ENVIRONMENT_PROVIDER = "environment_provider"
    ENVIRONMENT_CREDENTIALS = "environment_credentials"
    ENVIRONMENT_CONFIGURATION = "environment_configuration"
    ENVIRONMENT_STORE = "environment_store"
    ENVIRONMENT_SLOTS = "environment_slots"
    LANE_PAUSED = "lane_paused"
    SHUTDOWN = "shutdown"
    SESSION_LOST = "session_lost"
    KEYS_REJECTED = "keys_rejected"
    KEYS_MISSING = "keys_missing"
    EVICTED = "evicted"
    ABANDONED = "abandoned"


class Step(StrEnum):
    """The steps of a run, in their order."""

    ENRICH = "enrich"
    MEMORIES = "memories"
    FANOUT = "fanout"


class EffectState(StrEnum):
    """`pending`: to be done; `sent`: may have left; `done` and `dropped` are final."""

    PENDING = "pending"
    SENT = "sent"
    DONE = "done"
    DROPPED = "dropped"


class EffectCode(StrEnum):
    """What a step or a delivery came to."""

    STORED = "stored"
    RESULT_SHORTENED = "result_shortened"
    EMPTY = "empty"
    DISCARDED = "discarded"
    HTTP_2XX = "http_2xx"
    HTTP_3XX = "http_3xx"
    HTTP_4XX = "http_4xx"
    HTTP_408 = "http_408"
    HTTP_425 = "http_425"
    HTTP_429 = "http_429"
    HTTP_5XX = "http_5xx"
    TIMEOUT = "timeout"
    CONNECT_FAILED = "connect_failed"
    TLS_FAILED = "tls_failed"
    DNS_FAILED = "dns_failed"
    RESET = "reset"
    PROTOCOL_ERROR = "protocol_error"
    ADDRESS_REFUSED = "address_refused"
    DESTINATION_GONE = "destination_gone"
    ATTEMPTS_EXHAUSTED = "attempts_exhausted"


class RefusalCode(StrEnum):
    """Why a command changed nothing."""

    CONVERSATION_NOT_FOUND = "conversation_not_found"
    CONVERSATION_EMPTY = "conversation_empty"
    CONVERSATION_DISCARDED = "conversation_discarded"
    CONVERSATION_NOT_OURS = "conversation_not_ours"
    CONVERSATION_FULL = "conversation_full"
    CONVERSATION_SETTLED = "conversation_settled"
    JOB_UNKNOWN = "job_unknown"
    WRONG_IDENTITY = "wrong_identity"
    WRONG_STATUS = "wrong_status"
    TERMINAL = "terminal"
    BLOCKED_BYOK = "blocked_byok"
    KEYS_REQUIRED = "keys_required"
    STALE_GENERATION = "stale_generation"
    LEASE_HELD = "lease_held"
    CLAIM_LOST = "claim_lost"
    OWNERSHIP_LOST = "ownership_lost"
    NOT_DUE = "not_due"
    NOT_BYOK = "not_byok"
    CONVERSATION_CHANGED = "conversation_changed"
    CONVERSATION_OURS = "conversation_ours"
    DELIVERIES_OPEN = "deliveries_open"
    DELIVERY_NOT_DROPPED = "delivery_not_dropped"
    DISABLED = "disabled"
    SCHEMA_NEWER = "schema_newer"


class ReleaseCause(StrEnum):
    """Why an owner gives a job back without having failed."""

    SHUTDOWN = "shutdown"
    ENVIRONMENT = "environment"
    SESSION_LOST = "session_lost"
    KEYS_REJECTED = "keys_rejected"


class RedispatchCause(StrEnum):
    """Why a new hand-over is minted."""

    DUE = "due"
    REQUEUE = "requeue"
    LANE = "lane"
    ENVIRONMENT = "environment"


class PurgeCause(StrEnum):
    """Why a row is deleted."""

    ACCOUNT = "account"
    RETENTION = "retention"
