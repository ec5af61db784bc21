"""The application: which routes there are, under which guards, from which collaborators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.responses import Response
from starlette.routing import Route

from listen_finalization.admission import Admission
from listen_finalization.http import openapi
from listen_finalization.http.caller import Callers, Verifier
from listen_finalization.http.customer import REFUSALS, CustomerRoutes
from listen_finalization.http.embedded import EmbeddedRoutes
from listen_finalization.http.failures import ProblemIndex, handlers
from listen_finalization.http.finalization import Finalizations
from listen_finalization.http.guard import LastResort, SecurityHeaders
from listen_finalization.http.health import HealthRoutes, Part
from listen_finalization.http.limiter import RateLimiter
from listen_finalization.http.models import (
    FinalizationAnswer,
    FinalizeAnswer,
    FinalizeRequest,
    RecordAnswer,
    SegmentsAnswer,
    SegmentsRequest,
)
from listen_finalization.http.problems import PATH, Kind
from listen_finalization.http.rounds import RoundRoute
from listen_finalization.http.tasks import WorkerRoute
from listen_finalization.observe.signals import Signals
from listen_finalization.ports import Conversations, Outbox
from listen_finalization.settings import RECONCILE_PATH, RUN_PATH

CONVERSATION = "/v1/conversations/{conversation_id}"
EMBEDDED_ONLY = "embedded stack only; the production application has routes of its own for these"
_NO_TELEMETRY: Any = dict.fromkeys(
    ("tracing", "metrics", "logs", "operation_spans", "auto_configure"), False
)
"""FastAPI's own spans would hold exception texts and paths with conversation ids."""


@dataclass(frozen=True, slots=True)
class CustomerServices:
    """The collaborators of the customers' routes.

    `durable`: whether a durable worker is fully configured, else finalize answers 503. `embedded`
    adds the routes of a single machine, over the conversations that it names.
    """

    verifier: Verifier
    admission: Admission
    outbox: Outbox
    max_attempts: int
    durable: bool
    embedded: Conversations | None = None
    limiter: RateLimiter = field(default_factory=RateLimiter)


@dataclass(frozen=True, slots=True)
class Services:
    """What an application serves; a part that is None has no routes in it."""

    signals: Signals
    customers: CustomerServices | None = None
    worker: WorkerRoute | None = None
    rounds: RoundRoute | None = None
    parts: Mapping[str, Part] = field(default_factory=dict)


def build_app(services: Services) -> FastAPI:
    """Build the application. It redirects nothing and serves no documentation pages."""
    app = FastAPI(
        title="listen-finalization",
        summary="From the end of a live listen session to a finished conversation record.",
        version=version("listen-finalization"),
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        middleware=[Middleware(SecurityHeaders), Middleware(LastResort, services.signals)],
        exception_handlers=handlers(services.signals),
        telemetry=_NO_TELEMETRY,
    )
    _add_internal(app, services)  # first: routes are tried in this order, and these match exactly
    if services.customers is not None:
        _add_customer(app, services.customers, services.signals)
    app.openapi = lambda: openapi.describe(app)  # type: ignore[method-assign]
    return app


def _add_customer(app: FastAPI, services: CustomerServices, signals: Signals) -> None:
    callers = Callers(services.verifier, signals)
    routes = CustomerRoutes(
        callers,
        services.admission,
        Finalizations(services.outbox),
        services.limiter,
        durable=services.durable,
        max_attempts=services.max_attempts,
    )
    refused = (*REFUSALS.values(), Kind.USE_LIVE_SESSION, Kind.RATE_LIMITED, Kind.NOT_CONFIGURED)
    common = (*openapi.AUTHENTICATED, *openapi.STORED)
    app.add_api_route(
        f"{CONVERSATION}/finalize",
        routes.finalize,
        methods=["POST"],
        tags=["finalization"],
        response_model=FinalizeAnswer,
        responses=openapi.declared(*common, *refused, *openapi.WITH_BODY),
        openapi_extra=openapi.operation(FinalizeRequest, optional=True),
    )
    app.add_api_route(
        f"{CONVERSATION}/finalization",
        routes.finalization,
        methods=["GET"],
        tags=["finalization"],
        response_model=FinalizationAnswer,
        responses={**openapi.retry_hint(), **openapi.declared(*common, Kind.NOT_FINALIZED)},
        openapi_extra=openapi.operation(),
    )
    if services.embedded is not None:
        _add_embedded(app, EmbeddedRoutes(callers, services.embedded))


def _add_embedded(app: FastAPI, routes: EmbeddedRoutes) -> None:
    common = (*openapi.AUTHENTICATED, *openapi.STORED)
    putting = {*common, Kind.CONVERSATION_CLOSED, *openapi.WITH_BODY} - {
        Kind.CONVERSATION_NOT_FOUND
    }
    app.add_api_route(
        f"{CONVERSATION}/segments",
        routes.put_segments,
        methods=["PUT"],
        tags=[EMBEDDED_ONLY],
        response_model=SegmentsAnswer,
        responses=openapi.declared(*putting),
        openapi_extra=openapi.operation(SegmentsRequest),
    )
    app.add_api_route(
        CONVERSATION,
        routes.read,
        methods=["GET"],
        tags=[EMBEDDED_ONLY],
        response_model=RecordAnswer,
        responses=openapi.declared(*common),
        openapi_extra=openapi.operation(),
    )
    app.add_api_route(
        CONVERSATION,
        routes.delete,
        methods=["DELETE"],
        tags=[EMBEDDED_ONLY],
        status_code=204,
        response_class=Response,
        response_model=None,
        responses=openapi.declared(*common),
        openapi_extra=openapi.operation(),
    )


def _add_internal(app: FastAPI, services: Services) -> None:
    """Add what is in no OpenAPI document."""
    routes = app.router.routes
    if services.worker is not None:
        # The bound method: starlette takes any other callable for an ASGI application.
        run = services.worker.__call__
        routes.append(Route(RUN_PATH, run, methods=["POST"], include_in_schema=False))
    if services.rounds is not None:
        start = services.rounds.__call__
        routes.append(Route(RECONCILE_PATH, start, methods=["POST"], include_in_schema=False))
    health = HealthRoutes(services.parts)
    routes.append(Route("/livez", health.live, include_in_schema=False))
    routes.append(Route("/readyz", health.ready, include_in_schema=False))
    index = ProblemIndex()
    routes.append(Route(f"{PATH}/{{kind}}", index.show, include_in_schema=False))
