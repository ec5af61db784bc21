"""From faults to what a person at a terminal is told: one line each, an exit code, a next step."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from listen_finalization.cli.exit_codes import ExitCode
from listen_finalization.errors import ListenFinalizationError, SettingsError


class CommandError(ListenFinalizationError):
    """The command cannot go on."""

    def __init__(self, detail: str, *, code: ExitCode, remedy: str, word: str = "error") -> None:
        """`word` is the bounded code that JSON output carries beside the text."""
        super().__init__(detail)
        self.code = code
        self.remedy = remedy
        self.word = word


class Told(NamedTuple):
    """What is said of one fault."""

    lines: tuple[str, ...]
    code: ExitCode
    remedy: str
    word: str


# fmt: off
_REMEDIES: Mapping[str, tuple[ExitCode, str]] = {
    "SettingsError": (ExitCode.USAGE,
        "correct the environment; `listen-finalization check` shows every setting"),
    "TranscriptError": (ExitCode.USAGE, "correct the file and give it again"),
    "StoreBusyError": (ExitCode.UNAVAILABLE, "try again in a moment"),
    "StoreFullError": (ExitCode.UNAVAILABLE, "free disk space and try again"),
    "StoreBrokenError": (ExitCode.UNAVAILABLE,
        "check the disk and that nobody moved or deleted the data directory, then start again"),
    "StoreSchemaError": (ExitCode.UNAVAILABLE, "install the version that wrote this store"),
    "StoreRefusedError": (ExitCode.UNAVAILABLE,
        "check the store's project, database, indexes and permissions"),
    "ValueRefusedError": (ExitCode.USAGE, "correct the value; a repeat does not help"),
    "RowUnreadableError": (ExitCode.UNAVAILABLE, "install the version that wrote this row"),
    "StoreError": (ExitCode.UNAVAILABLE, "check the data directory that was given with --data"),
    "KeyFileError": (ExitCode.UNAVAILABLE, "repair or remove the key file that is named"),
    "ConversationClosedError": (ExitCode.REFUSED,
        "give the conversation another id; --force-process keeps short ones from being discarded"),
    "TooManyDestinationsError": (ExitCode.REFUSED, "`listen-finalization destinations remove`"),
    "InvalidDeliveryError": (ExitCode.USAGE, "see `listen-finalization destinations add --help`"),
    "AddressRefusedError": (ExitCode.USAGE,
        "give a public https URL, or a loopback one on this machine"),
    "ExtraMissingError": (ExitCode.USAGE, "install the extra and start again"),
    "CredentialsMissingError": (ExitCode.UNAVAILABLE,
        "`gcloud auth application-default login`, or run under a service account"),
    "ListenFinalizationError": (ExitCode.UNAVAILABLE, "see `listen-finalization --help`"),
}
# fmt: on


def told(fault: ListenFinalizationError) -> Told:
    """Return what is said of a fault of ours.

    Classes are looked up by name along their bases, so that no library is loaded for its error.
    """
    if isinstance(fault, CommandError):
        return Told((str(fault),), fault.code, fault.remedy, fault.word)
    name = next(one.__name__ for one in type(fault).__mro__ if one.__name__ in _REMEDIES)
    code, remedy = _REMEDIES[name]
    detail, _, own = str(fault).rpartition("; ") if name == "TranscriptError" else ("", "", "")
    return Told((detail,) if detail else _lines(fault), code, own or remedy, _word(fault))


def _word(fault: ListenFinalizationError) -> str:
    """Return the name of a class of ours as a code: `StoreBusyError` is `store_busy_error`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(fault).__name__).lower()


def _lines(fault: ListenFinalizationError) -> tuple[str, ...]:
    """Return the message; settings tell all that is wrong, each in a line of its own."""
    first, *rest = str(fault).split("\n- ") if isinstance(fault, SettingsError) else [str(fault)]
    return tuple(rest) or (first.partition("\n")[0],)


def os_fault(fault: OSError) -> CommandError:
    """Return what is said of a refusal of the operating system: its reason, no path."""
    reason = fault.strerror or type(fault).__name__
    return CommandError(
        f"the operating system refused: {reason}",
        code=ExitCode.UNAVAILABLE,
        remedy="check the data directory, its owner and the free space",
        word="os_error",
    )
