"""A private key in a file: made once, by whichever process comes first, and read by all."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from listen_finalization.errors import ListenFinalizationError

KEY_BITS = 2048
MAX_FILE = 16 * 1024
"""Bytes of a key file; a 2048-bit key in PKCS 8 has 1.7 KiB."""
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class KeyFileError(ListenFinalizationError):
    """A private key file cannot be used."""


def open_key(path: Path) -> RSAPrivateKey:
    """Return the key in `path`, creating directory (0700) and file (0600) where they are missing.

    The file appears whole or not at all (written aside, flushed, then linked), so processes that
    start together end with the same key. Raises KeyFileError, naming the path, when the file is
    open to group or others, is not a regular file, or holds no RSA key of 2048 bits or more.
    """
    data = _read(path)
    if data is None:
        _create(path)
        data = _read(path)
    return _parse(path, data or b"")


def _create(path: Path) -> None:
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write(draft, _new_key())
        with suppress(FileExistsError):
            os.link(draft, path)
        _flush_directory(path.parent)
    except OSError as fault:
        raise KeyFileError(f"{path}: the key file cannot be created") from fault
    finally:
        with suppress(OSError):
            draft.unlink()


def _new_key() -> bytes:
    key = generate_private_key(public_exponent=65537, key_size=KEY_BITS)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _write(path: Path, data: bytes) -> None:
    with os.fdopen(os.open(path, _CREATE, 0o600), "wb") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _flush_directory(path: Path) -> None:
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _read(path: Path) -> bytes | None:
    """Return the file's bytes, None where there is no file."""
    try:
        with os.fdopen(os.open(path, _READ), "rb") as file:
            _demand_private(path, os.fstat(file.fileno()).st_mode)
            return file.read(MAX_FILE + 1)
    except FileNotFoundError:
        return None
    except OSError as fault:
        raise KeyFileError(f"{path}: the key file cannot be read") from fault


def _demand_private(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise KeyFileError(f"{path}: the key file must be a regular file")
    if mode & 0o077:
        raise KeyFileError(f"{path}: the key file is open to group or others; set its mode to 0600")


def _parse(path: Path, data: bytes) -> RSAPrivateKey:
    try:
        key = load_pem_private_key(data, password=None) if len(data) <= MAX_FILE else None
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, RSAPrivateKey) or key.key_size < KEY_BITS:
        raise KeyFileError(f"{path}: the key file holds no RSA private key of {KEY_BITS} bits")
    return key
