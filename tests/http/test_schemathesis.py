"""The public OpenAPI document against the application itself, in process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings
from schemathesis import Case
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from listen_finalization.admission import Admission
from listen_finalization.auth.issuer import LocalIssuer
from listen_finalization.auth.policy import TokenPolicy
from listen_finalization.auth.verifier import TokenVerifier
from listen_finalization.domain.content import Segment
from listen_finalization.domain.job import Job
from listen_finalization.domain.policy import Policy
from listen_finalization.http.app import CustomerServices, Services, build_app
from listen_finalization.http.limiter import RateLimiter
from listen_finalization.observe.signals import Signals
from listen_finalization.outbox.sqlite import SqliteStore

UID = "ada"
KEYS = ("spoken", "empty", "blocked", "new")
BOUNDED = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))


class Taken:
    async def hand_over(self, job: Job, *, delay: int = 0) -> bool:
        return True


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("api")


@pytest.fixture(scope="module")
def issuer(directory: Path) -> LocalIssuer:
    return LocalIssuer.open(directory, "users")


@pytest.fixture(scope="module")
def app(directory: Path, issuer: LocalIssuer) -> Iterator[FastAPI]:
    store = SqliteStore(directory / "listen.db", Policy(handover=0, retry_floor=0))
    signals = Signals()
    asyncio.run(prepared(store))
    yield build_app(
        Services(
            signals=signals,
            customers=CustomerServices(
                verifier=TokenVerifier(TokenPolicy.local_users("api"), issuer.key_source()),
                admission=Admission(store.outbox, Taken(), signals),
                outbox=store.outbox,
                max_attempts=5,
                durable=True,
                embedded=store.conversations,
                limiter=RateLimiter(1_000_000),
            ),
        )
    )
    store.close()


async def prepared(store: SqliteStore) -> None:
    said = Segment("s1", "Ada", 0.0, 2.0, "We ship on Friday.")
    await store.conversations.append(UID, "spoken", [said])
    await store.conversations.append(UID, "empty", [])
    await store.conversations.append(UID, "blocked", [said], byok=True)


@pytest.fixture(scope="module")
def headers(issuer: LocalIssuer) -> dict[str, str]:
    return {"Authorization": f"Bearer {issuer.mint_user_token(UID, 'api')}"}


@pytest.fixture(scope="module")
def document(app: FastAPI) -> Any:
    return schemathesis.openapi.from_asgi("/openapi.json", app)


OPERATIONS = [
    ("POST", "/v1/conversations/{conversation_id}/finalize"),
    ("GET", "/v1/conversations/{conversation_id}/finalization"),
    ("PUT", "/v1/conversations/{conversation_id}/segments"),
    ("GET", "/v1/conversations/{conversation_id}"),
    ("DELETE", "/v1/conversations/{conversation_id}"),
]


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
@pytest.mark.parametrize("mode", list(GenerationMode))
def test_any_request_is_answered_as_the_document_says(
    document: Any, headers: dict[str, str], method: str, path: str, mode: GenerationMode
) -> None:
    """Valid and invalid requests; that of a valid one to an unknown id is 404 is no fault."""

    @BOUNDED
    @given(case=document[path][method].as_strategy(generation_mode=mode))
    def ask(case: Case[Any]) -> None:
        case.call_and_validate(headers=headers, excluded_checks=[positive_data_acceptance])

    ask()


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
@pytest.mark.parametrize("key", KEYS)
def test_valid_requests_for_known_conversations_are_answered_as_the_document_says(
    document: Any, headers: dict[str, str], method: str, path: str, key: str
) -> None:
    @BOUNDED
    @given(case=document[path][method].as_strategy())
    def ask(case: Case[Any]) -> None:
        case.path_parameters = {"conversation_id": key}
        case.call_and_validate(headers=headers, excluded_checks=[positive_data_acceptance])

    ask()


def test_the_document_has_the_customers_routes_and_no_other(app: FastAPI) -> None:
    told = app.openapi()
    served = [(m.upper(), path) for path, item in told["paths"].items() for m in item]
    assert sorted(served) == sorted(OPERATIONS)
    for path in told["paths"].values():
        for operation in path.values():
            assert operation["security"] == [{"userToken": []}]
            for status, response in operation["responses"].items():
                if int(status) >= 400:
                    assert set(response["content"]) == {"application/problem+json"}
