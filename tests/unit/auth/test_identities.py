"""Each entrance of production takes its own identity and no other, from real key servers."""

from __future__ import annotations

import asyncio
import datetime
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx
import jwt
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding

from listen_finalization.auth.identities import (
    KeyServers,
    customer_verifier,
    pusher_verifier,
    scheduler_verifier,
    task_verifier,
)
from listen_finalization.auth.issuer import LocalIssuer
from listen_finalization.auth.keys import KeySourceError
from listen_finalization.auth.outcome import Reason, Refused, Verified
from listen_finalization.auth.policy import PolicyError
from listen_finalization.auth.verifier import TokenVerifier
from listen_finalization.testing.key_server import Answer, KeyServer

from .tokens import PROJECT, UID, bearer, bent, private_key

BASE = "https://finalizer.example/v1"
AUDIENCES = {
    "tasks": f"{BASE}/conversation-finalization-jobs/run",
    "pusher": f"{BASE}/trigger/listen",
    "scheduler": f"{BASE}/conversation-finalization-jobs/reconcile",
}
ACCOUNTS = {name: f"{name}@canary-project.iam.gserviceaccount.com" for name in AUDIENCES}
ENTRANCES = [*AUDIENCES, "customer"]

Publish = Callable[[dict[str, str]], object]
"""Turns {kid: name of a key} into a key document."""


def as_jwks(kids: dict[str, str]) -> object:
    entries = [
        {**LocalIssuer(private_key(name)).jwks()["keys"][0], "kid": kid}
        for kid, name in kids.items()
    ]
    return {"keys": entries}


def as_certificates(kids: dict[str, str]) -> object:
    """Publish as Firebase does at robot/v1: {kid: PEM of an X.509 certificate}."""
    return {kid: certificate_of(name) for kid, name in kids.items()}


def certificate_of(name: str) -> str:
    key, subject = private_key(name), x509.Name([])
    start = datetime.datetime(2020, 1, 1)
    built = x509.CertificateBuilder(subject, subject, key.public_key(), 1, start, start)
    return built.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()


def token(claims: dict[str, Any], key: str, kid: str | None = None) -> str:
    """Sign claims with the named key."""
    payload = json.dumps(claims).encode()
    return jwt.PyJWS().encode(payload, private_key(key), "RS256", {"kid": kid or key})


def service(name: str, **changes: Any) -> dict[str, Any]:
    now = int(time.time())
    claims = {
        "iss": "https://accounts.google.com",
        "aud": AUDIENCES[name],
        "sub": "1234",
        "email": ACCOUNTS[name],
        "email_verified": True,
        "iat": now,
        "exp": now + 3600,
    }
    return bent(claims, changes)


def customer(**changes: Any) -> dict[str, Any]:
    now = int(time.time())
    claims = {
        "iss": f"https://securetoken.google.com/{PROJECT}",
        "aud": PROJECT,
        "sub": UID,
        "user_id": UID,
        "auth_time": now - 60,
        "iat": now,
        "exp": now + 3600,
    }
    return bent(claims, changes)


def local_service(name: str) -> str:
    """Mint the token of a local task issuer, as like to the genuine one as it can be."""
    return LocalIssuer(private_key("local")).mint_task_token(AUDIENCES[name], ACCOUNTS[name])


def local_user() -> str:
    return LocalIssuer(private_key("local")).mint_user_token(UID, PROJECT)


GENUINE: dict[str, Callable[[], str]] = {
    "tasks": lambda: token(service("tasks"), "google"),
    "pusher": lambda: token(service("pusher"), "google"),
    "scheduler": lambda: token(service("scheduler"), "google"),
    "customer": lambda: token(customer(), "firebase"),
}


class World:
    """Google's and Firebase's key servers, and the four entrances that trust them."""

    def __init__(self, google: KeyServer, firebase: KeyServer, servers: KeyServers) -> None:
        self.google = google
        self.firebase = firebase
        self.google.answer = Answer.json(as_jwks({"google": "google"}))
        self.firebase.answer = Answer.json(as_certificates({"firebase": "firebase"}))
        self.at: dict[str, TokenVerifier] = {
            "tasks": task_verifier(
                servers,
                audience=AUDIENCES["tasks"],
                invoker=ACCOUNTS["tasks"],
                certs_url=google.url,
            ),
            "pusher": pusher_verifier(
                servers,
                audience=AUDIENCES["pusher"],
                account=ACCOUNTS["pusher"],
                certs_url=google.url,
            ),
            "scheduler": scheduler_verifier(
                servers,
                audience=AUDIENCES["scheduler"],
                account=ACCOUNTS["scheduler"],
                certs_url=google.url,
            ),
            "customer": customer_verifier(servers, project=PROJECT, certs_url=firebase.url),
        }

    async def told(self, entrance: str, said: str) -> Verified | Reason:
        answer = await self.at[entrance].verify(bearer(said))
        return answer.reason if isinstance(answer, Refused) else answer


@pytest.fixture
def key_servers() -> Iterator[tuple[KeyServer, KeyServer]]:
    google, firebase = KeyServer(), KeyServer()
    yield google, firebase
    google.stop()
    firebase.stop()


@pytest.fixture
async def world(key_servers: tuple[KeyServer, KeyServer]) -> AsyncIterator[World]:
    async with httpx.AsyncClient(trust_env=False) as client:
        servers = KeyServers(client)
        yield World(*key_servers, servers)
        await servers.aclose()


def identity(kind: str) -> Verified:
    return Verified(UID) if kind == "customer" else Verified("1234", ACCOUNTS[kind])


@pytest.mark.parametrize("entrance", ENTRANCES)
@pytest.mark.parametrize("kind", ENTRANCES)
async def test_each_entrance_takes_its_own_identity_and_no_other(
    kind: str, entrance: str, world: World
) -> None:
    told = await world.told(entrance, GENUINE[kind]())

    if kind == entrance:
        assert told == identity(kind)
    elif "customer" in (kind, entrance):
        assert told is Reason.UNKNOWN_KEY
    else:
        assert told is Reason.WRONG_AUDIENCE


@pytest.mark.parametrize("entrance", ENTRANCES)
@pytest.mark.parametrize("kind", ENTRANCES)
async def test_keys_that_all_servers_publish_make_no_identity_another(
    kind: str, entrance: str, world: World
) -> None:
    everything = Answer.json(as_jwks({"google": "google", "firebase": "firebase"}))
    world.google.answer = world.firebase.answer = everything
    told = await world.told(entrance, GENUINE[kind]())

    if kind == entrance:
        assert told == identity(kind)
    elif "customer" in (kind, entrance):
        assert told is Reason.WRONG_ISSUER
    else:
        assert told is Reason.WRONG_AUDIENCE


@pytest.mark.parametrize("entrance", AUDIENCES)
@pytest.mark.parametrize("kind", AUDIENCES)
async def test_a_service_of_another_account_is_forbidden_even_for_the_right_audience(
    kind: str, entrance: str, world: World
) -> None:
    said = token(service(entrance, email=ACCOUNTS[kind]), "google")

    expected = identity(kind) if kind == entrance else Reason.WRONG_IDENTITY
    assert await world.told(entrance, said) == expected


@pytest.mark.parametrize("published", [False, True])
@pytest.mark.parametrize("entrance", ENTRANCES)
async def test_the_local_issuers_are_accepted_nowhere(
    entrance: str, published: bool, world: World
) -> None:
    issuer = LocalIssuer(private_key("local"))
    if published:
        world.google.answer = world.firebase.answer = Answer.json(issuer.jwks())
    refusal = Reason.WRONG_ISSUER if published else Reason.UNKNOWN_KEY

    for said in (local_user(), *map(local_service, AUDIENCES)):
        assert await world.told(entrance, said) is refusal


@pytest.mark.parametrize("kid", ["google", "firebase"])
@pytest.mark.parametrize("entrance", ENTRANCES)
async def test_a_forged_token_under_a_known_key_id_is_refused(
    entrance: str, kid: str, world: World
) -> None:
    claims = customer() if entrance == "customer" else service(entrance)
    ours = kid == ("firebase" if entrance == "customer" else "google")

    told = await world.told(entrance, token(claims, "thief", kid))
    assert told is (Reason.BAD_SIGNATURE if ours else Reason.UNKNOWN_KEY)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"iss": "https://securetoken.google.com/another-project"}, Reason.WRONG_ISSUER),
        ({"iss": "https://securetoken.google.com/"}, Reason.WRONG_ISSUER),
        ({"iss": f"https://session.firebase.google.com/{PROJECT}"}, Reason.WRONG_ISSUER),
        ({"aud": "another-project"}, Reason.WRONG_AUDIENCE),
        ({"sub": ""}, Reason.BAD_CLAIMS),
        ({"sub": ...}, Reason.BAD_CLAIMS),
        ({"auth_time": 4_000_000_000}, Reason.NOT_YET_VALID),
    ],
)
async def test_a_token_of_another_project_or_kind_is_no_customer(
    changes: dict[str, Any], reason: Reason, world: World
) -> None:
    assert await world.told("customer", token(customer(**changes), "firebase")) is reason


# Key servers


@pytest.mark.parametrize("publish", [as_jwks, as_certificates])
async def test_both_forms_of_publication_serve_every_entrance(
    publish: Publish, world: World
) -> None:
    world.google.answer = Answer.json(publish({"google": "google"}))
    world.firebase.answer = Answer.json(publish({"firebase": "firebase"}))

    for kind in ENTRANCES:
        assert await world.told(kind, GENUINE[kind]()) == identity(kind)


async def test_nothing_is_fetched_before_the_first_token(world: World) -> None:
    assert (world.google.fetches, world.firebase.fetches) == (0, 0)
    assert await world.at["tasks"].verify([]) == Refused(Reason.MISSING)
    assert (world.google.fetches, world.firebase.fetches) == (0, 0)


async def test_a_hundred_tokens_at_once_are_one_fetch_of_each_server(world: World) -> None:
    said = [(kind, GENUINE[kind]()) for kind in ENTRANCES]
    told = await asyncio.gather(*(world.told(*one) for one in said * 25))

    assert told == [identity(kind) for kind, _ in said] * 25
    assert (world.google.fetches, world.firebase.fetches) == (1, 1)


async def test_an_outage_of_one_key_server_is_none_of_the_other(world: World) -> None:
    world.firebase.answer = Answer(status=500)

    assert await world.told("customer", GENUINE["customer"]()) is Reason.KEYS_UNAVAILABLE
    assert await world.told("tasks", GENUINE["tasks"]()) == identity("tasks")


async def test_a_known_key_outlives_an_outage_and_an_unknown_one_is_our_fault(
    world: World,
) -> None:
    assert await world.told("tasks", GENUINE["tasks"]()) == identity("tasks")
    world.google.stop()

    assert await world.told("pusher", GENUINE["pusher"]()) == identity("pusher")
    # Within the pause after a good fetch nobody asks again: this key is not one of Google's.
    assert await world.told("tasks", token(service("tasks"), "new")) is Reason.UNKNOWN_KEY


# Values


async def test_a_blank_value_makes_no_verifier(world: World) -> None:
    async with httpx.AsyncClient() as client:
        servers = KeyServers(client)
        url = world.google.url
        with pytest.raises(PolicyError, match="tasks token policy: audience"):
            task_verifier(servers, audience="", invoker=ACCOUNTS["tasks"], certs_url=url)
        with pytest.raises(PolicyError, match="pusher token policy: email"):
            pusher_verifier(servers, audience=BASE, account=" ", certs_url=url)
        with pytest.raises(PolicyError, match="scheduler token policy: email"):
            scheduler_verifier(servers, audience=BASE, account="", certs_url=url)
        with pytest.raises(PolicyError, match="users token policy: audience"):
            customer_verifier(servers, project="", certs_url=url)
        with pytest.raises(KeySourceError):
            customer_verifier(servers, project=PROJECT, certs_url="http://keys.example/")
