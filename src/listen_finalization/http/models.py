"""The shapes of customer requests and answers; requests are strict, bounded and closed.

The names inside `calendar_meeting_context` are those of the application's own model, so that its
clients and prompts need no second spelling.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from listen_finalization.domain.codes import EffectState, FailureCode, Outcome, Step
from listen_finalization.http.finalization import Standing
from listen_finalization.http.problems import FieldCode, FieldFault, Kind, ProblemError

MAX_PARTICIPANTS = 50
MAX_SEGMENTS = 5_000
MAX_SECONDS = 1_000_000.0
"""Eleven days: no conversation is longer."""

_RFC3339 = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?"
    r"(?:[Zz]|[+-][0-9]{2}:[0-9]{2})"
)


def _moment(text: str) -> str:
    if not _RFC3339.fullmatch(text):
        raise ValueError
    whole = re.sub(r"\.[0-9]+", "", text.upper())
    datetime.fromisoformat(whole)
    return text


Moment = Annotated[
    str,
    Field(max_length=40, json_schema_extra={"format": "date-time"}),
    AfterValidator(_moment),
]
"""A moment as RFC 3339 writes it, kept as the text that came; no leap second."""

Line = Annotated[str, Field(max_length=300)]
Id = Annotated[str, Field(min_length=1, max_length=128)]
Seconds = Annotated[float, Field(ge=0, le=MAX_SECONDS, allow_inf_nan=False)]


class Asked(BaseModel):
    """A part of a request: no unknown field, no conversion, no value in an error."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)


class Participant(Asked):
    name: Line | None = None
    email: Annotated[str, Field(max_length=320)] | None = None


class CalendarMeetingContext(Asked):
    """The meeting that the conversation was; at most 16 KiB as JSON."""

    calendar_event_id: Line | None = None
    calendar_source: Line | None = None
    title: Line | None = None
    participants: Annotated[list[Participant], Field(max_length=MAX_PARTICIPANTS)] | None = None
    platform: Line | None = None
    meeting_link: Annotated[str, Field(max_length=2_000)] | None = None
    location: Line | None = None
    start_time: Moment | None = None
    end_time: Moment | None = None
    duration_minutes: Annotated[int, Field(ge=0, le=50_000)] | None = None
    notes: Annotated[str, Field(max_length=8_000)] | None = None


class FinalizeRequest(Asked):
    """What a finalize may say; all of it counts only for the admission that makes the job."""

    force_process: bool = False
    calendar_meeting_context: CalendarMeetingContext | None = None


class SegmentRequest(Asked):
    """One stretch of speech; `start` and `end` are seconds from the conversation's start."""

    id: Id
    speaker: Annotated[str, Field(max_length=100)]
    start: Seconds
    end: Seconds
    text: Annotated[str, Field(max_length=20_000)]


class SegmentsRequest(Asked):
    segments: Annotated[list[SegmentRequest], Field(min_length=1, max_length=MAX_SEGMENTS)]
    language: Annotated[str, Field(pattern=r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8}){0,3}$")] = "en"


class ConversationAnswer(BaseModel):
    id: str
    status: Literal["in_progress", "processing", "completed", "failed", "other"]
    discarded: bool


class FinalizeAnswer(BaseModel):
    """The conversation after the commit, and the job that owns its finalization."""

    conversation: ConversationAnswer
    job_id: str | None
    status: Standing


class StepAnswer(BaseModel):
    step: Step
    state: EffectState | Literal["skipped"]


class FinalizationAnswer(BaseModel):
    """Where the finalization stands.

    The counts are null once the job's row was retired; the conversation then tells the rest.
    `attempt_count` counts runs that began, `last_task_retry` how often the queue delivered before
    the present one. `deliveries` counts the user's integrations by state.
    """

    job_id: str | None
    status: Standing
    terminal: bool
    retryable: bool
    attempt_count: int | None
    max_attempts: int
    dispatch_generation: int | None
    last_task_retry: int | None
    failure_code: FailureCode | None
    outcome: Outcome | None
    created_at: str | None
    updated_at: str | None
    next_attempt_at: str | None
    poll_after_seconds: int | None
    steps: list[StepAnswer]
    deliveries: dict[EffectState, int] | None


class SegmentsAnswer(BaseModel):
    content_version: int


class MemoryAnswer(BaseModel):
    text: str
    segment_ids: list[str]


class RecordAnswer(BaseModel):
    """A conversation with what its finalization wrote; `structured` is null before."""

    conversation: ConversationAnswer
    structured: dict[str, Any] | None
    memories: list[MemoryAnswer]


class FieldAnswer(BaseModel):
    field: str
    code: FieldCode


class Problem(BaseModel):
    """A problem document (RFC 9457); `fields` only where fields of the request are at fault."""

    type: str
    code: str
    title: str
    status: int
    detail: str
    fields: list[FieldAnswer] | None = None


Model = TypeVar("Model", bound=Asked)


def validated(model: type[Model], value: object) -> Model:
    """Build a request. Raises `ProblemError` that names fields and nothing of the input."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        faults = field_faults(error.errors(include_url=False, include_input=False))
    raise ProblemError(Kind.INVALID_REQUEST, fields=faults)


def field_faults(errors: Sequence[ErrorDetails]) -> list[FieldFault]:
    """Name the fields of pydantic's errors by our own names, their faults by our own words."""
    return [FieldFault(_path(error), _code(error["type"])) for error in errors]


def _path(error: ErrorDetails) -> str:
    """Return the path; the key of an unknown field is input, so its object is named instead."""
    known = error["loc"][:-1] if error["type"] == "extra_forbidden" else error["loc"]
    return ".".join(map(str, known)) or "body"


def _code(kind: str) -> FieldCode:
    if kind in _CODES:
        return _CODES[kind]
    return FieldCode.WRONG_TYPE if kind.endswith("_type") else FieldCode.INVALID


_CODES = {
    "missing": FieldCode.MISSING,
    "extra_forbidden": FieldCode.UNKNOWN_FIELD,
    "string_too_long": FieldCode.TOO_LONG,
    "too_long": FieldCode.TOO_LONG,
    "string_too_short": FieldCode.TOO_SHORT,
    "too_short": FieldCode.TOO_SHORT,
    "greater_than_equal": FieldCode.OUT_OF_RANGE,
    "less_than_equal": FieldCode.OUT_OF_RANGE,
    "finite_number": FieldCode.OUT_OF_RANGE,
}
