"""Production on one machine: roles in processes of their own, and real servers around them."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import sys
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Self

import httpx
import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from google.cloud.firestore_v1 import AsyncClient
from google.cloud.tasks_v2 import Queue

from firestore_wire.index_file import IndexFile
from firestore_wire.tap import Tap
from listen_finalization.auth.issuer import LocalIssuer
from listen_finalization.auth.policy import FIREBASE_ISSUER
from listen_finalization.dispatch.cloud_tasks import open_client
from listen_finalization.domain.content import Segment
from listen_finalization.domain.job import Job
from listen_finalization.domain.policy import Policy
from listen_finalization.outbox.firestore import FirestoreStore
from listen_finalization.settings import RUN_PATH
from listen_finalization.testing.cloud_tasks import CloudTasksServer
from listen_finalization.testing.key_server import Answer, KeyServer
from listen_finalization.testing.processor import Call, read_calls
from listen_finalization.testing.redis_server import free_port

from .cable import Cable
from .firestore_rows import tables_of
from .invariants import Rows, Tables

ROOT = Path(__file__).parents[2]
INVOKER = "invoker@example-project.iam.gserviceaccount.com"
SCHEDULER = "scheduler@example-project.iam.gserviceaccount.com"
USERS = "users-of-the-test"
LOCATION = "us-central1"
ATTEMPTS = 5


@cache
def _key(purpose: str) -> RSAPrivateKey:
    """Make the key of that purpose, once for all clouds of this process."""
    del purpose
    return generate_private_key(public_exponent=65537, key_size=2048)


@dataclass
class Process:
    """One role, in a process of its own."""

    process: asyncio.subprocess.Process
    role: str
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def kill(self) -> None:
        self.process.kill()
        await self.process.wait()

    async def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return await self.process.wait()


class Cloud:
    """The servers, the roles and the customers; `cable` lies between the roles and Firestore.

    Behind the cable, every query of the roles must be one that the shipped indexes cover.

    Customers' tokens have Google's form for Firebase, signed by a key that a server on loopback
    publishes; task tokens come from the Cloud Tasks server.
    """

    def __init__(
        self,
        directory: Path,
        firestore: str,
        *,
        project: str | None = None,
        redis: str | None = None,
        delay: float = 0.05,
        **environment: str,
    ) -> None:
        """Stand in a project of its own where none is named."""
        self.project = project or f"p-{secrets.token_hex(8)}"
        self.directory = directory
        self.stderr = directory / "stderr.txt"
        self.calls_log = directory / "calls.jsonl"
        self.tap = Tap(firestore)
        self.queue_name = f"projects/{self.project}/locations/{LOCATION}/queues/finalization"
        self.tasks = CloudTasksServer(key=_key("tasks"))
        self.worker_port = free_port()
        self._firestore = firestore
        self._redis = redis
        self._delay = delay
        self._environment = environment
        self._closing = AsyncExitStack()
        self._key = _key("users")
        self._issuer = LocalIssuer(self._key)
        self._keys = KeyServer()
        self._keys.answer = Answer.json(self._issuer.jwks())
        self.running: list[Process] = []

    async def __aenter__(self) -> Self:
        await self._closing.enter_async_context(self.tap)
        self.cable = await self._closing.enter_async_context(Cable(self.tap.address))
        await self._closing.enter_async_context(self.tasks)
        self.client = AsyncClient(project=self.project)
        self.store = FirestoreStore(self.project, Policy(), client=self.client)
        self.http = httpx.AsyncClient(timeout=30)
        await self._create_queue()
        return self

    async def _create_queue(self) -> None:
        """Create the queue as it is deployed, with waits that a test can afford."""
        client = await open_client(self.tasks.address)
        parent = self.queue_name.partition("/queues/")[0]
        queue = Queue(
            name=self.queue_name,
            rate_limits={"max_concurrent_dispatches": 4},
            retry_config={
                "max_attempts": ATTEMPTS,
                "min_backoff": timedelta(seconds=0.2),
                "max_backoff": timedelta(seconds=2),
            },
        )
        await client.create_queue(parent=parent, queue=queue)
        await client.transport.close()  # type: ignore[no-untyped-call]

    async def __aexit__(self, failure: object, *_: object) -> None:
        for one in self.running:
            if one.process.returncode is None:
                await one.kill()
        await self.http.aclose()
        await self.store.close()
        await self._closing.aclose()
        self._keys.stop()
        if failure is None:
            self.tap.check(IndexFile.shipped())

    @property
    def worker_url(self) -> str:
        return f"http://127.0.0.1:{self.worker_port}"

    @property
    def audience(self) -> str:
        return f"{self.worker_url}{RUN_PATH}"

    def environment(self) -> dict[str, str]:
        """Return what every role is given: production's settings, for servers of this machine."""
        redis = {"LISTEN_FINALIZATION_RUN_LOCK_URL": self._redis} if self._redis else {}
        return {
            "PATH": os.environ["PATH"],
            "FIRESTORE_EMULATOR_HOST": self.cable.address,
            "CLOUD_TASKS_EMULATOR_HOST": self.tasks.address,
            "SYNC_TASKS_PROJECT": self.project,
            "SYNC_TASKS_LOCATION": LOCATION,
            "LISTEN_FINALIZATION_DISPATCH_MODE": "cloud_tasks",
            "LISTEN_FINALIZATION_TASKS_QUEUE": "finalization",
            "LISTEN_FINALIZATION_TASKS_HANDLER_URL": self.audience,
            "LISTEN_FINALIZATION_TASKS_OIDC_AUDIENCE": self.audience,
            "LISTEN_FINALIZATION_TASKS_INVOKER_SA": INVOKER,
            "LISTEN_FINALIZATION_SCHEDULER_SA": SCHEDULER,
            "LISTEN_FINALIZATION_GOOGLE_CERTS_URL": self.tasks.keys_url,
            "LISTEN_FINALIZATION_FIREBASE_CERTS_URL": self._keys.url,
            "LISTEN_FINALIZATION_FIREBASE_PROJECT": USERS,
            "LISTEN_FINALIZATION_RECONCILE_STALE_SECONDS": "30",
            "LISTEN_FINALIZATION_RECONCILE_INTERVAL_SECONDS": "10",
            "LISTEN_FINALIZATION_LEASE_SECONDS": "3",
            "LISTEN_FINALIZATION_BACKOFF_SECONDS": "1",
            "LISTEN_FINALIZATION_FINALIZE_PER_MINUTE": "6000",
            "LISTEN_FINALIZATION_PROCESSOR": "tests.integration.role_processor:logged",
            "TEST_PROCESSOR_LOG": str(self.calls_log),
            "TEST_PROCESSOR_DELAY": str(self._delay),
            **redis,
            **self._environment,
        }

    async def start(self, role: str) -> Process:
        """Start a role; it answers when this returns."""
        port = self.worker_port if role in ("worker", "all") else free_port()
        with self.stderr.open("ab") as errors:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "listen_finalization.cli.main"),
                *("serve", "--role", role, "--host", "127.0.0.1", "--port", str(port)),
                cwd=ROOT,
                env=self.environment(),
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
            )
        assert process.stdout is not None
        async with asyncio.timeout(30):
            line = await process.stdout.readline()
        assert line, self.stderr.read_text("utf-8")[-4_000:]
        started = Process(process, role, port)
        self.running.append(started)
        return started

    def token(self, uid: str) -> str:
        """Return a Firebase ID token of the user."""
        now = int(time.time())
        claims = {
            "iss": f"{FIREBASE_ISSUER}{USERS}",
            "aud": USERS,
            "sub": uid,
            "auth_time": now,
            "iat": now,
            "exp": now + 3600,
        }
        return jwt.encode(claims, self._key, "RS256", headers={"kid": self._issuer.kid})

    def _bearer(self, uid: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token(uid)}"}

    async def talk(self, conversation_id: str, uid: str = "ada") -> None:
        said = Segment(f"{conversation_id}:1", "Ada", 0.0, 2.0, f"We ship {conversation_id} soon.")
        await self.store.conversations.append(uid, conversation_id, [said])

    async def finalize(
        self, api: Process | str, conversation_id: str, uid: str = "ada"
    ) -> httpx.Response:
        """Ask a role, or whoever is at the URL, as a customer does."""
        return await self.http.post(
            f"{_url(api)}/v1/conversations/{conversation_id}/finalize",
            headers=self._bearer(uid),
        )

    async def status(
        self, api: Process | str, conversation_id: str, uid: str = "ada"
    ) -> httpx.Response:
        return await self.http.get(
            f"{_url(api)}/v1/conversations/{conversation_id}/finalization",
            headers=self._bearer(uid),
        )

    async def jobs(self) -> list[Job]:
        found: list[Job] = []
        cursor = None
        while True:
            page = await self.store.outbox.list(limit=500, cursor=cursor)
            assert page.unreadable == ()
            found += page.jobs
            cursor = page.cursor
            if cursor is None:
                return found

    async def until(self, count: int, limit: float) -> None:
        """Wait until at least `count` jobs are terminal."""
        async with asyncio.timeout(limit):
            while sum(job.terminal for job in await self.jobs()) < count:  # noqa: ASYNC110 - seen from outside
                await asyncio.sleep(0.1)

    def calls(self) -> list[Call]:
        return read_calls(self.calls_log)

    async def tables(self) -> Tables:
        """Read the database as the embedded store's tables."""
        return await tables_of(self.client, await self.jobs())


def _url(place: Process | str) -> str:
    return place if isinstance(place, str) else place.url


def completed(rows: Rows) -> int:
    return sum(row["status"] == "completed" for row in rows)
