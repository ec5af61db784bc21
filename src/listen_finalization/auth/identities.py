"""The four identities of production: values in, verifiers out, all equally strict."""

from __future__ import annotations

import httpx

from listen_finalization.auth.keys import HttpKeySource
from listen_finalization.auth.policy import PolicyName, TokenPolicy
from listen_finalization.auth.verifier import TokenVerifier


class KeyServers:
    """One source of keys for each address, shared by all the entrances that name it.

    Nothing is fetched before the first token. Belongs to one event loop; the client stays the
    caller's, who closes it after `aclose`.
    """

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client
        self._sources: dict[str, HttpKeySource] = {}

    def at(self, url: str) -> HttpKeySource:
        """Return the keys at an address. Raises `KeySourceError` for one that cannot be trusted."""
        if url not in self._sources:
            self._sources[url] = HttpKeySource(url, self._client)
        return self._sources[url]

    async def aclose(self) -> None:
        """End the fetches that run; may be called again."""
        for source in self._sources.values():
            await source.aclose()


def task_verifier(
    servers: KeyServers, *, audience: str, invoker: str, certs_url: str
) -> TokenVerifier:
    """Return who may run tasks: Google's OIDC tokens of the invoker account for the audience.

    Raises `PolicyError` for a blank value and `KeySourceError` for an untrusted address, as all
    the others do.
    """
    return _service(PolicyName.TASKS, servers, audience, invoker, certs_url)


def pusher_verifier(
    servers: KeyServers, *, audience: str, account: str, certs_url: str
) -> TokenVerifier:
    """Return who may open the pusher's socket: the service account that listen runs under."""
    return _service(PolicyName.PUSHER, servers, audience, account, certs_url)


def scheduler_verifier(
    servers: KeyServers, *, audience: str, account: str, certs_url: str
) -> TokenVerifier:
    """Return who may start a round of the reconciler: the scheduler's service account."""
    return _service(PolicyName.SCHEDULER, servers, audience, account, certs_url)


def customer_verifier(servers: KeyServers, *, project: str, certs_url: str) -> TokenVerifier:
    """Return who is a customer: a user of the Firebase project, by its ID token."""
    return TokenVerifier(TokenPolicy.firebase(project), servers.at(certs_url))


def _service(
    name: PolicyName, servers: KeyServers, audience: str, email: str, certs_url: str
) -> TokenVerifier:
    policy = TokenPolicy.google(name, audience, email=email)
    return TokenVerifier(policy, servers.at(certs_url))
