"""What the public OpenAPI document says beyond what FastAPI reads from the routes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from listen_finalization.domain.identity import MAX_ID_BYTES
from listen_finalization.http.models import FinalizeRequest, Problem, SegmentsRequest
from listen_finalization.http.problems import MEDIA_TYPE, PROBLEMS, Kind, document

_REF = "#/components/schemas/{model}"
_SECURITY = {"userToken": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}}
_SECONDS = {"description": "Seconds.", "schema": {"type": "integer", "minimum": 0}}
CONVERSATION_ID: dict[str, Any] = {
    "name": "conversation_id",
    "in": "path",
    "required": True,
    "description": "Without slash, backslash and control characters; not `.`, `..` or `__x__`.",
    "schema": {"type": "string", "minLength": 1, "maxLength": MAX_ID_BYTES},
}
AUTHENTICATED = (Kind.UNAUTHENTICATED, Kind.FORBIDDEN, Kind.IDENTITY_UNAVAILABLE)
STORED = (Kind.STORE_BUSY, Kind.STORE_UNAVAILABLE, Kind.INTERNAL_ERROR, Kind.CONVERSATION_NOT_FOUND)
WITH_BODY = (
    Kind.BODY_TOO_LARGE,
    Kind.BODY_TIMEOUT,
    Kind.UNSUPPORTED_MEDIA_TYPE,
    Kind.INVALID_REQUEST,
)


def declared(*kinds: Kind) -> dict[int | str, dict[str, Any]]:
    """Return the `responses` of a route that can answer with these problems."""
    by_status = sorted(set(kinds), key=lambda kind: (PROBLEMS[kind].status, kind))
    groups = groupby(by_status, key=lambda kind: PROBLEMS[kind].status)
    return {status: _response(tuple(group)) for status, group in groups}


def _response(kinds: tuple[Kind, ...]) -> dict[str, Any]:
    examples = {kind.value: {"value": document(kind)} for kind in kinds}
    schema = {"$ref": _REF.format(model=Problem.__name__)}
    told: dict[str, Any] = {
        "description": " ".join(PROBLEMS[kind].when for kind in kinds),
        "content": {MEDIA_TYPE: {"schema": schema, "examples": examples}},
    }
    if any(PROBLEMS[kind].retry_after for kind in kinds):
        told["headers"] = {"Retry-After": {**_SECONDS, "required": True}}
    if Kind.UNAUTHENTICATED in kinds:
        challenge = {"schema": {"type": "string"}, "required": True}
        told["headers"] = {"WWW-Authenticate": challenge}
    return told


def operation(body: type[BaseModel] | None = None, *, optional: bool = False) -> dict[str, Any]:
    """Return what a route of one conversation says of its parameter, token and body."""
    extra: dict[str, Any] = {"parameters": [CONVERSATION_ID], "security": [{"userToken": []}]}
    if body is not None:
        schema = {"$ref": _REF.format(model=body.__name__)}
        content = {"application/json": {"schema": schema}}
        extra["requestBody"] = {"required": not optional, "content": content}
    return extra


def retry_hint() -> Mapping[int | str, dict[str, Any]]:
    """Return what a 200 says of its Retry-After."""
    return {200: {"headers": {"Retry-After": _SECONDS}}}


def describe(app: FastAPI) -> dict[str, Any]:
    """Build the document once; models that no route's signature shows are added."""
    if app.openapi_schema is None:
        built = get_openapi(
            title=app.title, version=app.version, summary=app.summary, routes=app.routes
        )
        components = built.setdefault("components", {})
        components.setdefault("schemas", {}).update(_schemas(_read(built)))
        components["securitySchemes"] = _SECURITY
        app.openapi_schema = built
    return app.openapi_schema


def _read(built: Mapping[str, Any]) -> Iterable[type[BaseModel]]:
    """Return the models that the routes of this document refer to by hand."""
    text = str(built["paths"])
    models: tuple[type[BaseModel], ...] = (FinalizeRequest, SegmentsRequest, Problem)
    return [model for model in models if _REF.format(model=model.__name__) in text]


def _schemas(models: Iterable[type[BaseModel]]) -> dict[str, Any]:
    _, built = models_json_schema([(m, "validation") for m in models], ref_template=_REF)
    schemas: dict[str, Any] = built.get("$defs", {})
    return schemas
