"""What people said is in no log of the client's, however its logging is switched on."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from listen_finalization.domain.codes import EffectState, Step
from listen_finalization.domain.commands import Checkpoint, Complete, StepResult
from listen_finalization.domain.job import Effect
from listen_finalization.outbox.conformance.subject import leased, moved
from listen_finalization.testing.canary import KeptLog

from .firestore_subject import FirestoreSubject

pytestmark = pytest.mark.xdist_group("firestore")

TRANSPORT = "google.cloud.firestore_v1.services.firestore.transports.grpc_asyncio"
CANARY = "zebraquartz"


@pytest.fixture(params=["google", TRANSPORT])
def switched_on(request: pytest.FixtureRequest) -> Iterator[KeptLog]:
    """Switch a scope on as google-api-core does for its environment variable."""
    logger, handler = logging.getLogger(request.param), KeptLog()
    before = logger.level
    logger.setLevel(logging.DEBUG)
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(before)


async def test_no_request_is_logged_where_the_clients_own_logging_is_on(
    switched_on: KeptLog, firestore: FirestoreSubject
) -> None:
    job = await leased(firestore)
    results = (StepResult(Step.ENRICH, f'{{"title":"{CANARY}"}}'),)
    effects = (Effect(Step.ENRICH, EffectState.DONE),)
    job = await moved(firestore, Checkpoint(job.claim, effects=effects, results=results))
    await moved(firestore, Complete(job.claim))
    assert CANARY not in switched_on.text


async def test_client_that_is_not_ours_would_be_heard(
    switched_on: KeptLog, firestore: FirestoreSubject
) -> None:
    logging.getLogger(TRANSPORT).setLevel(logging.DEBUG)
    await firestore.client.document("users", "u").set({"said": CANARY})
    assert CANARY in switched_on.text
