"""The routes that only the embedded stack has: put a transcript in, read the record, delete.

In production the application owns its conversations and has routes of its own for all of this.
"""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from listen_finalization.domain.content import Segment
from listen_finalization.domain.identity import identifier_fault
from listen_finalization.errors import ConversationClosedError
from listen_finalization.http.answers import record_answer
from listen_finalization.http.caller import Callers, conversation_id
from listen_finalization.http.models import (
    SegmentRequest,
    SegmentsAnswer,
    SegmentsRequest,
    validated,
)
from listen_finalization.http.problems import FieldCode, FieldFault, Kind, ProblemError
from listen_finalization.http.requests import json_body, parsed
from listen_finalization.ports import Conversations

MAX_BODY = 8 * 1024 * 1024
_BAD_ID = FieldFault("conversation_id", FieldCode.INVALID)


class EmbeddedRoutes:
    """`PUT .../segments`, and `GET` and `DELETE` of one conversation, for its owner alone."""

    def __init__(self, callers: Callers, conversations: Conversations) -> None:
        self._callers = callers
        self._conversations = conversations

    async def put_segments(self, request: Request) -> Response:
        """Store segments by id, in a new conversation where there is none; a repeat is harmless.

        A large body is parsed in a thread, so that other requests go on.
        """
        uid = await self._callers.uid(request)
        key = _new_id(request)
        body = await json_body(request, limit=MAX_BODY)
        asked = await asyncio.to_thread(_asked, body)
        segments = tuple(map(_segment, asked.segments))
        try:
            version = await self._conversations.append(uid, key, segments, language=asked.language)
        except ConversationClosedError:
            raise ProblemError(Kind.CONVERSATION_CLOSED) from None
        return JSONResponse(SegmentsAnswer(content_version=version).model_dump(mode="json"))

    async def read(self, request: Request) -> Response:
        """Return the conversation with its finished record."""
        uid = await self._callers.uid(request)
        record = await self._conversations.find(uid, conversation_id(request))
        if record is None or record.conversation.deleted:
            raise ProblemError(Kind.CONVERSATION_NOT_FOUND)
        return JSONResponse(record_answer(record).model_dump(mode="json"))

    async def delete(self, request: Request) -> Response:
        """Mark the conversation deleted: from then on it is answered like one that never was."""
        uid = await self._callers.uid(request)
        if not await self._conversations.delete(uid, conversation_id(request)):
            raise ProblemError(Kind.CONVERSATION_NOT_FOUND)
        return Response(status_code=204)


def _new_id(request: Request) -> str:
    """Return the id under which a conversation may be made. Raises `ProblemError` with 422."""
    value = str(request.path_params["conversation_id"])
    if identifier_fault(value) is not None:
        raise ProblemError(Kind.INVALID_REQUEST, fields=[_BAD_ID])
    return value


def _asked(body: bytes) -> SegmentsRequest:
    return validated(SegmentsRequest, parsed(body))


def _segment(given: SegmentRequest) -> Segment:
    return Segment(given.id, given.speaker, given.start, given.end, given.text)
