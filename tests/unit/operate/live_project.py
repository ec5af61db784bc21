"""A whole project on loopback that is as its deploy files say, until a test changes it."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any, cast

import httpx
import uvicorn
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from google.cloud import tasks_v2
from google.iam.v1 import policy_pb2  # type: ignore[import-untyped]

from listen_finalization.auth.identities import KeyServers, task_verifier
from listen_finalization.finalizer import Finalizer
from listen_finalization.http.app import Services, build_app
from listen_finalization.http.serving import uvicorn_settings
from listen_finalization.http.tasks import WorkerRoute
from listen_finalization.observe.signals import Signals
from listen_finalization.operate.deployed import Deployed, read_deployed
from listen_finalization.operate.examination import examine
from listen_finalization.operate.facts import Unseen
from listen_finalization.operate.findings import Code, Finding
from listen_finalization.operate.google import Endpoints, Headers
from listen_finalization.settings import RUN_PATH, Settings

from .google_grpc import GoogleGrpc
from .google_rest import TOKEN, GoogleRest

DEPLOY = Path(__file__).parents[3] / "deploy"
PROJECT, PLACE = "acme-prod", "projects/acme-prod/locations/us-central1"
WORKER = f"/v2/{PLACE}/services/backend-sync"
DATABASE = f"/v1/projects/{PROJECT}/databases/(default)/collectionGroups/-"
INVOKER = f"/v1/projects/{PROJECT}/serviceAccounts/{{}}:getIamPolicy"
SHARED = f"/v3/projects/{PROJECT}:getIamPolicy"
ENQUEUERS = ("api", "worker", "live")


@cache
def signing_key() -> RSAPrivateKey:
    return generate_private_key(public_exponent=65537, key_size=2048)


def email(role: str) -> str:
    return f"finalization-{role}@{PROJECT}.iam.gserviceaccount.com"


def members(*roles: str) -> list[str]:
    return [f"serviceAccount:{email(role)}" for role in roles]


async def known() -> Headers:
    return {"Authorization": f"Bearer {TOKEN}"}


class LiveProject:
    """Servers, deploy files and the environment of a worker."""

    def __init__(self, rest: GoogleRest, grpc: GoogleGrpc, handler: str, directory: Path) -> None:
        self.rest, self.grpc, self.directory = rest, grpc, directory
        self.env = _environment(rest.url, grpc.address, handler)
        _write_deploy(directory, handler)
        rest.answers |= {
            WORKER: (200, _service(handler)),
            f"{WORKER}:getIamPolicy": _bound("roles/run.invoker", "invoker", "scheduler"),
            INVOKER.format(email("invoker")): _bound("roles/iam.serviceAccountUser", *ENQUEUERS),
            SHARED: (200, {}),
            f"{DATABASE}/indexes": (200, _indexes()),
            f"{DATABASE}/fields": (200, _fields()),
        }

    @property
    def deployed(self) -> Deployed:
        return read_deployed(self.directory, "production")

    @property
    def settings(self) -> Settings:
        return Settings.from_environment(self.env)

    @property
    def endpoints(self) -> Endpoints:
        return Endpoints(*[self.rest.url] * 4)

    def document(self, path: str) -> Any:
        """Return what is answered at a path, to be changed."""
        return self.rest.answers[path][1]

    async def examined(
        self, *, deadline: float = 20, account: Headers | Unseen | None = None
    ) -> dict[Code, Finding]:
        async def found() -> Headers | Unseen:
            return await known() if account is None else account

        ended = await examine(
            self.deployed,
            self.settings,
            deadline=deadline,
            endpoints=self.endpoints,
            account=found,
        )
        return {one.code: one for one in ended}


@contextmanager
def live_project(directory: Path) -> Iterator[LiveProject]:
    """Start everything; `FIRESTORE_EMULATOR_HOST` is the caller's to set to `grpc.address`."""
    policy = policy_pb2.Policy(
        bindings=[{"role": "roles/cloudtasks.enqueuer", "members": members(*ENQUEUERS)}]
    )
    with ExitStack() as servers:
        rest = servers.enter_context(GoogleRest(signing_key()))
        grpc = servers.enter_context(GoogleGrpc(_queue(), policy))
        handler = servers.enter_context(_worker(f"{rest.url}/certs/google"))
        yield LiveProject(rest, grpc, handler, directory)


@contextmanager
def _worker(certs: str) -> Iterator[str]:
    """Serve a real worker route; no delivery of these tests gets past its verifier."""
    ready, ended = threading.Event(), threading.Event()

    async def serve(listener: socket.socket) -> None:
        async with httpx.AsyncClient() as client:
            verifier = task_verifier(
                KeyServers(client), audience="acme", invoker=email("invoker"), certs_url=certs
            )
            route = WorkerRoute(verifier, cast(Finalizer, None), Signals())
            app = build_app(Services(Signals(), customers=None, worker=route))
            server = uvicorn.Server(uvicorn.Config(app, **uvicorn_settings()))
            serving = asyncio.ensure_future(server.serve([listener]))
            ready.set()
            await asyncio.to_thread(ended.wait)
            server.should_exit = True
            await serving

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=lambda: asyncio.run(serve(listener)))
        thread.start()
        ready.wait()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}{RUN_PATH}"
        ended.set()
        thread.join()


def _queue() -> tasks_v2.Queue:
    return tasks_v2.Queue(
        name=f"{PLACE}/queues/conversation-finalization",
        state=tasks_v2.Queue.State.RUNNING,
        rate_limits=tasks_v2.RateLimits(
            max_concurrent_dispatches=4, max_dispatches_per_second=500, max_burst_size=100
        ),
        retry_config=tasks_v2.RetryConfig(
            max_attempts=5,
            min_backoff=timedelta(seconds=10),
            max_backoff=timedelta(seconds=600),
            max_doublings=6,
        ),
    )


def _environment(rest: str, grpc: str, handler: str) -> dict[str, str]:
    prefix = "LISTEN_FINALIZATION_"
    return {
        f"{prefix}DISPATCH_MODE": "cloud_tasks",
        f"{prefix}TASKS_QUEUE": "conversation-finalization",
        f"{prefix}TASKS_HANDLER_URL": handler,
        f"{prefix}TASKS_OIDC_AUDIENCE": handler,
        f"{prefix}TASKS_INVOKER_SA": email("invoker"),
        f"{prefix}SCHEDULER_SA": email("scheduler"),
        f"{prefix}FIREBASE_PROJECT": PROJECT,
        f"{prefix}GOOGLE_CERTS_URL": f"{rest}/certs/google",
        f"{prefix}FIREBASE_CERTS_URL": f"{rest}/certs/users",
        "SYNC_TASKS_PROJECT": PROJECT,
        "SYNC_TASKS_LOCATION": "us-central1",
        "CLOUD_TASKS_EMULATOR_HOST": grpc,
    }


def _write_deploy(directory: Path, handler: str) -> None:
    """Write the shipped files with a project in them, and the worker on this machine."""
    settings = json.loads((DEPLOY / "production.json").read_text("utf-8"))
    settings["project"] = PROJECT
    settings["services"]["worker"]["environment"] = {
        "LISTEN_FINALIZATION_TASKS_HANDLER_URL": handler,
        "LISTEN_FINALIZATION_TASKS_OIDC_AUDIENCE": handler,
    }
    (directory / "firestore").mkdir(parents=True)
    (directory / "production.json").write_text(json.dumps(settings), "utf-8")
    for name in ("indexes.json", "ttl.json"):
        text = (DEPLOY / "firestore" / name).read_text("utf-8")
        (directory / "firestore" / name).write_text(text, "utf-8")


def _bound(role: str, *roles: str) -> tuple[int, Any]:
    return 200, {"version": 1, "bindings": [{"role": role, "members": members(*roles)}]}


def _service(handler: str) -> dict[str, Any]:
    """Return run.googleapis.com/v2, Service."""
    env = [
        {"name": "LISTEN_FINALIZATION_TASKS_OIDC_AUDIENCE", "value": handler},
        {"name": "LISTEN_FINALIZATION_RUN_LOCK_URL", "valueSource": {"secretKeyRef": {}}},
    ]
    return {
        "name": f"{PLACE}/services/backend-sync",
        "ingress": "INGRESS_TRAFFIC_INTERNAL_ONLY",
        "invokerIamDisabled": True,
        "template": {
            "serviceAccount": email("worker"),
            "timeout": "1800s",
            "maxInstanceRequestConcurrency": 4,
            "containers": [{"image": "server:v7", "env": env}],
        },
        "urls": ["https://backend-sync-abc-uc.a.run.app", handler.removesuffix(RUN_PATH)],
    }


def _shipped() -> Mapping[str, Any]:
    told: Mapping[str, Any] = json.loads((DEPLOY / "firestore" / "indexes.json").read_text("utf-8"))
    return told


def _named(group: str, kind: str, name: str) -> str:
    return f"projects/{PROJECT}/databases/(default)/collectionGroups/{group}/{kind}/{name}"


def _indexes() -> dict[str, Any]:
    """Return firestore.googleapis.com/v1, ListIndexesResponse: the server adds `__name__`."""
    return {
        "indexes": [
            {
                "name": _named(one["collectionGroup"], "indexes", str(number)),
                "queryScope": one["queryScope"],
                "fields": [*one["fields"], {"fieldPath": "__name__", "order": "ASCENDING"}],
                "state": "READY",
            }
            for number, one in enumerate(_shipped()["indexes"])
        ]
    }


def _fields() -> dict[str, Any]:
    """Return firestore.googleapis.com/v1, ListFieldsResponse."""
    fields = [
        {
            "name": _named(one["collectionGroup"], "fields", one["fieldPath"]),
            "indexConfig": {
                "indexes": [
                    {
                        "queryScope": index["queryScope"],
                        "fields": [{"fieldPath": one["fieldPath"], "order": index["order"]}],
                        "state": "READY",
                    }
                    for index in one["indexes"]
                ]
            },
        }
        for one in _shipped()["fieldOverrides"]
    ]
    kept = json.loads((DEPLOY / "firestore" / "ttl.json").read_text("utf-8"))
    ttl = {"state": "ACTIVE", "expirationOffset": kept["expirationOffset"]}
    name = _named(kept["collectionGroup"], "fields", kept["fieldPath"])
    return {"fields": [*fields, {"name": name, "indexConfig": {}, "ttlConfig": ttl}]}
