"""Every fault this package raises. The docstring of a class is its message."""

from __future__ import annotations


class ListenFinalizationError(Exception):
    """listen-finalization failed."""

    def __init__(self, detail: str | None = None) -> None:
        super().__init__(detail or self.__doc__ or "")
