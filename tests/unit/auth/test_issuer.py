"""The two local issuers: keys on disk, tokens that pass exactly where they should."""

from __future__ import annotations

import copy
import json
import os
import pickle
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from listen_finalization.auth.issuer import (
    REUSE_SECONDS,
    KeyFileError,
    LocalIssuer,
    TokenMinter,
    thumbprint,
)
from listen_finalization.auth.keyset import parse_keys
from listen_finalization.auth.outcome import Reason, Refused, Verified
from listen_finalization.auth.policy import PolicyName, TokenPolicy
from listen_finalization.auth.sources import StaticKeySource
from listen_finalization.auth.verifier import TokenVerifier

from .tokens import AUDIENCE, EMAIL, NOW, PROJECT, TASKS, UID, USERS, bearer, private_key

LOCAL_TASKS = TokenPolicy.local_service(PolicyName.TASKS, AUDIENCE, email=EMAIL)
LOCAL_USERS = TokenPolicy.local_users(PROJECT)


@pytest.fixture
def tasks(tmp_path: Path) -> LocalIssuer:
    return LocalIssuer.open(tmp_path, "tasks", now=lambda: NOW)


@pytest.fixture
def users(tmp_path: Path) -> LocalIssuer:
    return LocalIssuer.open(tmp_path, "users", now=lambda: NOW)


def checks(policy: TokenPolicy, issuer: LocalIssuer) -> TokenVerifier:
    return TokenVerifier(policy, issuer.key_source(), now=lambda: NOW)


async def test_a_local_task_token_passes_the_local_task_policy(tasks: LocalIssuer) -> None:
    token = tasks.mint_task_token(AUDIENCE, EMAIL)
    answer = await checks(LOCAL_TASKS, tasks).verify(bearer(token))
    assert answer == Verified("local-service", EMAIL)


async def test_a_local_user_token_passes_the_local_user_policy(users: LocalIssuer) -> None:
    token = users.mint_user_token(UID, PROJECT)
    assert await checks(LOCAL_USERS, users).verify(bearer(token)) == Verified(UID)


async def test_a_task_token_is_no_user_token_nor_the_reverse(
    tasks: LocalIssuer, users: LocalIssuer
) -> None:
    task = bearer(tasks.mint_task_token(AUDIENCE, EMAIL))
    user = bearer(users.mint_user_token(UID, PROJECT))
    assert await checks(LOCAL_USERS, users).verify(task) == Refused(Reason.UNKNOWN_KEY)
    assert await checks(LOCAL_TASKS, tasks).verify(user) == Refused(Reason.UNKNOWN_KEY)


async def test_even_with_a_shared_key_the_two_kinds_stay_apart(tasks: LocalIssuer) -> None:
    same = bearer(tasks.mint_task_token(PROJECT, EMAIL))
    assert await checks(LOCAL_USERS, tasks).verify(same) == Refused(Reason.WRONG_ISSUER)
    user = bearer(tasks.mint_user_token(UID, AUDIENCE))
    assert await checks(LOCAL_TASKS, tasks).verify(user) == Refused(Reason.WRONG_ISSUER)


async def test_a_local_token_passes_no_google_policy(
    tasks: LocalIssuer, users: LocalIssuer
) -> None:
    task = bearer(tasks.mint_task_token(AUDIENCE, EMAIL))
    user = bearer(users.mint_user_token(UID, PROJECT))
    assert await checks(TASKS, tasks).verify(task) == Refused(Reason.WRONG_ISSUER)
    assert await checks(USERS, users).verify(user) == Refused(Reason.WRONG_ISSUER)


def test_a_user_token_has_the_shape_of_firebase(users: LocalIssuer) -> None:
    token = users.mint_user_token(UID, PROJECT, lifetime=60)
    assert jwt.decode(token, options={"verify_signature": False}) == {
        "iss": f"https://users.listen-finalization.invalid/{PROJECT}",
        "aud": PROJECT,
        "sub": UID,
        "user_id": UID,
        "auth_time": NOW,
        "iat": NOW,
        "exp": NOW + 60,
    }
    assert jwt.get_unverified_header(token) == {"alg": "RS256", "kid": users.kid, "typ": "JWT"}


@pytest.mark.parametrize("lifetime", [0, -1, 3601])
def test_a_lifetime_is_one_second_to_one_hour(users: LocalIssuer, lifetime: int) -> None:
    with pytest.raises(ValueError, match="lifetime"):
        users.mint_user_token("canary", PROJECT, lifetime=lifetime)


@pytest.mark.parametrize("uid", ["", "canary/x", "canary" * 30])
def test_a_uid_that_is_no_identifier_is_not_minted(users: LocalIssuer, uid: str) -> None:
    with pytest.raises(ValueError, match="uid") as fault:
        users.mint_user_token(uid, PROJECT)
    assert "canary" not in str(fault.value)


async def test_the_jwks_holds_the_public_half_alone(tasks: LocalIssuer) -> None:
    document = tasks.jwks()
    assert [set(entry) for entry in document["keys"]] == [{"kty", "n", "e", "kid", "use", "alg"}]
    keys = StaticKeySource(parse_keys(json.dumps(document).encode()))
    token = bearer(tasks.mint_task_token(AUDIENCE, EMAIL))
    verifier = TokenVerifier(LOCAL_TASKS, keys, now=lambda: NOW)
    assert isinstance(await verifier.verify(token), Verified)


def test_the_key_id_is_the_thumbprint_of_rfc_7638() -> None:
    example = (
        "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJE"
        "CPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2Q"
        "vzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6"
        "WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw"
    )
    key = jwt.algorithms.RSAAlgorithm.from_jwk({"kty": "RSA", "n": example, "e": "AQAB"})
    assert isinstance(key, rsa.RSAPublicKey)
    assert thumbprint(key) == "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"


def test_opening_twice_gives_the_same_key_and_two_names_give_two(tmp_path: Path) -> None:
    first = LocalIssuer.open(tmp_path / "data" / "keys", "tasks")
    again = LocalIssuer.open(tmp_path / "data" / "keys", "tasks")
    other = LocalIssuer.open(tmp_path / "data" / "keys", "users")
    assert first.kid == again.kid != other.kid
    assert sorted(path.name for path in (tmp_path / "data" / "keys").iterdir()) == [
        "tasks.key.pem",
        "users.key.pem",
    ]


@pytest.mark.parametrize("umask", [0o000, 0o077, 0o777])
def test_the_key_file_is_for_its_owner_alone_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        LocalIssuer.open(tmp_path, "tasks")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "tasks.key.pem").stat().st_mode) == 0o600


def test_processes_that_start_at_once_end_with_one_key(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path;"
        "from listen_finalization.auth.issuer import LocalIssuer;"
        "print(flush=True); sys.stdin.read();"
        "print(LocalIssuer.open(Path(sys.argv[1]), 'tasks').kid)"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    racers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(6)
    ]
    for racer in racers:
        assert racer.stdout is not None
        racer.stdout.readline()
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.close()
    kids = set()
    for racer in racers:
        assert racer.stdout is not None
        kids.add(racer.stdout.read().strip())
        racer.stdout.close()
        assert racer.wait() == 0
    assert kids == {LocalIssuer.open(tmp_path, "tasks").kid}
    assert [path.name for path in tmp_path.iterdir()] == ["tasks.key.pem"]


def test_the_loser_of_a_race_takes_the_winners_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    winner = LocalIssuer.open(tmp_path / "winner", "tasks")
    link, won = os.link, (tmp_path / "winner" / "tasks.key.pem")

    def lose(draft: Path, path: Path) -> None:
        link(won, path)
        link(draft, path)

    monkeypatch.setattr(os, "link", lose)
    loser = LocalIssuer.open(tmp_path / "loser", "tasks")
    assert loser.kid == winner.kid


def test_a_crash_before_the_key_is_whole_leaves_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "canary")

    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", full)
        with pytest.raises(KeyFileError, match="cannot be created") as fault:
            LocalIssuer.open(tmp_path, "tasks")
    assert "canary" not in str(fault.value)
    assert list(tmp_path.iterdir()) == []
    LocalIssuer.open(tmp_path, "tasks")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o620, 0o666, 0o601])
def test_a_key_file_that_is_open_to_others_is_refused(tmp_path: Path, mode: int) -> None:
    LocalIssuer.open(tmp_path, "tasks")
    (tmp_path / "tasks.key.pem").chmod(mode)
    with pytest.raises(KeyFileError, match=r"tasks\.key\.pem: .* set its mode to 0600"):
        LocalIssuer.open(tmp_path, "tasks")


def _pem(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey, password: bytes = b"") -> bytes:
    sealed = BestAvailableEncryption(password) if password else NoEncryption()
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, sealed)


CONTENTS: dict[str, Callable[[], bytes]] = {
    "empty": lambda: b"",
    "text": lambda: b"canary",
    "half": lambda: _pem(private_key())[:800],
    "huge": lambda: _pem(private_key()) + b"\n" * 20_000,
    "curve": lambda: _pem(ec.generate_private_key(ec.SECP256R1())),
    "small": lambda: _pem(rsa.generate_private_key(public_exponent=65537, key_size=1024)),
    "sealed": lambda: _pem(private_key(), b"canary"),
}


@pytest.mark.parametrize("content", CONTENTS)
def test_a_file_that_is_no_key_is_refused_and_kept(tmp_path: Path, content: str) -> None:
    path, data = tmp_path / "tasks.key.pem", CONTENTS[content]()
    path.touch(mode=0o600)
    path.write_bytes(data)
    with pytest.raises(KeyFileError, match="holds no RSA private key") as fault:
        LocalIssuer.open(tmp_path, "tasks")
    assert "canary" not in str(fault.value)
    assert path.read_bytes() == data


def test_a_path_that_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.key.pem").mkdir()
    os.mkfifo(tmp_path / "pipe.key.pem", 0o600)
    LocalIssuer.open(tmp_path, "tasks")
    (tmp_path / "link.key.pem").symlink_to(tmp_path / "tasks.key.pem")
    (tmp_path / "lost.key.pem").symlink_to(tmp_path / "nowhere")
    for name in ("folder", "pipe", "link", "lost"):
        with pytest.raises(KeyFileError, match=f"{name}.key.pem: the key file"):
            LocalIssuer.open(tmp_path, name)


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(KeyFileError, match=r"tasks\.key\.pem"):
        LocalIssuer.open(tmp_path / "file" / "data", "tasks")


@pytest.mark.parametrize("name", ["", "Tasks", "a/b", "..", "a" * 33, "1", "a\n"])
def test_the_name_of_an_issuer_cannot_leave_its_directory(tmp_path: Path, name: str) -> None:
    with pytest.raises(KeyFileError, match="name of a local issuer"):
        LocalIssuer.open(tmp_path, name)


def test_an_issuer_shows_nothing_and_cannot_be_copied(tasks: LocalIssuer) -> None:
    assert "PRIVATE" not in repr(tasks) and tasks.kid not in repr(tasks)
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be pickled or copied"):
            attempt(tasks)


def test_a_minter_hands_out_one_token_for_at_most_five_minutes() -> None:
    moments = [NOW, NOW + 1, NOW + REUSE_SECONDS - 1, NOW + REUSE_SECONDS]
    now = [0.0]
    minter = TokenMinter(
        LocalIssuer(private_key(), now=lambda: now[0]), audience=AUDIENCE, email=EMAIL
    )
    tokens = []
    for moment in moments:
        now[0] = moment
        tokens.append(minter.token())
    assert tokens[0] == tokens[1] == tokens[2] != tokens[3]
    assert tokens[0] not in repr(minter)


async def test_the_last_moment_of_reuse_leaves_time_to_arrive() -> None:
    issuer = LocalIssuer(private_key(), now=lambda: NOW)
    token = bearer(TokenMinter(issuer, audience=AUDIENCE, email=EMAIL).token())
    late = TokenVerifier(LOCAL_TASKS, issuer.key_source(), now=lambda: NOW + 2 * REUSE_SECONDS)
    assert isinstance(await late.verify(token), Verified)


@pytest.mark.parametrize("step", [-3600, -1, 3600])
def test_a_clock_that_was_set_makes_the_minter_mint(step: int) -> None:
    now = [float(NOW)]
    minter = TokenMinter(
        LocalIssuer(private_key(), now=lambda: now[0]), audience=AUDIENCE, email=EMAIL
    )
    before = minter.token()
    now[0] += step
    assert minter.token() != before
