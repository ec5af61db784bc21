"""Pages of a list by name: a token holds the last name that was shown, so that none is skipped."""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import Any, TypeVar

from listen_finalization.testing.cloud_tasks.refusals import invalid
from listen_finalization.testing.cloud_tasks.values import Queue, Task

Named = TypeVar("Named", Queue, Task)


def page(found: Sequence[Named], request: Any, most: int) -> tuple[Sequence[Named], str]:
    """Return the page that `request` asks for and the token of the next one, empty at the end.

    Raises `CallRefusedError` for a negative size or a token that is none.
    """
    if request.page_size < 0:
        raise invalid("page_size must not be negative")
    size = min(request.page_size or most, most)
    after = _name(request.page_token)
    rest = [one for one in found if one.name > after]
    shown = rest[:size]
    return shown, _token(shown[-1].name) if len(rest) > size else ""


def _token(name: str) -> str:
    return urlsafe_b64encode(name.encode()).decode()


def _name(token: str) -> str:
    try:
        return urlsafe_b64decode(token.encode()).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise invalid("page_token is not one of this list") from None
