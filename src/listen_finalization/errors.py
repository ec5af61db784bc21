"""Every fault this package raises. The docstring of a class is its message.

No message holds content, a key, an address or another exception's text; the cause is kept as
`__cause__` for a debugger and printed nowhere.
"""

from __future__ import annotations

from listen_finalization.domain.codes import FailureCode


class ListenFinalizationError(Exception):
    """listen-finalization failed."""

    def __init__(self, detail: str | None = None) -> None:
        super().__init__(detail or self.__doc__ or "")


class SettingsError(ListenFinalizationError):
    """A setting is missing or cannot work; the message names it, never its value."""


class ExtraMissingError(ListenFinalizationError, ImportError):
    """A part of this package needs an extra that is not installed."""

    def __init__(self, extra: str) -> None:
        super().__init__(
            f"the '{extra}' extra is not installed: pip install 'listen-finalization[{extra}]'"
        )


class CredentialsMissingError(ListenFinalizationError):
    """There is no account to call Google Cloud with."""


class StoreError(ListenFinalizationError):
    """The store did not take the command; nothing is known to be written."""


class StoreBusyError(StoreError):
    """The store is busy. Nothing was written; send the command again."""


class StoreFullError(StoreError):
    """The store has no space left. Nothing was written; free space, no restart is needed."""


class StoreBrokenError(StoreError):
    """The store cannot be trusted any more. This process must end; restart it."""


class StoreSchemaError(StoreError):
    """The store was written by a newer version. Upgrade this process before using it."""


class StoreUnavailableError(StoreError):
    """The store cannot be opened or read. Check that its directory exists and is writable."""


class StoreRefusedError(StoreError):
    """The store refuses this process. Check project, database, indexes and permissions."""


class ValueRefusedError(StoreError):
    """A value cannot be stored or asked for. Nothing was written and no repeat will help.

    Text must be valid Unicode (no lone surrogate), numbers finite, integers within 64 bits.
    """


class RowUnreadableError(StoreError):
    """A row was written by a newer version or is damaged; it was left as it is."""


class ConversationClosedError(ListenFinalizationError):
    """The conversation is deleted or discarded and takes no more segments."""


class StepFailedError(ListenFinalizationError):
    """A step failed for a reason of this conversation's own: it costs an attempt."""

    def __init__(self, code: FailureCode = FailureCode.PROVIDER_ERROR) -> None:
        super().__init__()
        self.code = code


class EnvironmentFaultError(ListenFinalizationError):
    """A step cannot work for anybody now: no attempt is counted. `retry_after` is in seconds."""

    def __init__(
        self,
        code: FailureCode = FailureCode.ENVIRONMENT_PROVIDER,
        *,
        retry_after: float | None = None,
    ) -> None:
        super().__init__()
        self.code = code
        self.retry_after = retry_after


class KeysRejectedError(ListenFinalizationError):
    """The user's own keys were refused, or are needed and absent: the job waits for others."""

    def __init__(self, code: FailureCode = FailureCode.KEYS_REJECTED) -> None:
        super().__init__()
        self.code = code
