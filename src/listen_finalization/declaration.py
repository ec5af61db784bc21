"""How one setting is declared: what a value may be, how it is read, shown and refused."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from listen_finalization.domain.budgets import DispatchMode

RUN_PATH = "/v1/conversation-finalization-jobs/run"
RECONCILE_PATH = "/v1/conversation-finalization-jobs/reconcile"
MASKED = "set, not shown"
UNSET = "unset"

_NUMBER = re.compile(r"[1-9][0-9]{0,8}")
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_HOST = rf"{_LABEL}(?:\.{_LABEL}){{0,8}}"
_PORT = r"(?::(?:[1-9]\d{0,3}|[1-5]\d{4}|6[0-4]\d{3}|65[0-4]\d\d|655[0-2]\d|6553[0-5]))?"
_LOOPBACK = r"(?:localhost|127\.0\.0\.1|\[::1\])"
_USER = r"(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2}){0,512}"
_DOTTED = r"[A-Za-z_]\w{0,99}(?:\.[A-Za-z_]\w{0,99}){0,9}"

# fmt: off
NumberKind = Literal["count", "seconds", "days"]
ChoiceKind = Literal["flag", "mode"]
TextKind = Literal[
    "account", "audience", "database", "handler_url", "keys_url", "loopback", "name", "path",
    "processor", "queue", "redis_url"]
Kind = NumberKind | ChoiceKind | TextKind
"""How the text of a setting is read."""

_NUMBERS: Mapping[Kind, str] = {"count": "", "seconds": " of seconds", "days": " of days"}
_CHOICES: Mapping[Kind, Mapping[str, Any]] = {
    "flag": {"true": True, "false": False}, "mode": {mode.value: mode for mode in DispatchMode}}
_TEXTS: Mapping[Kind, tuple[str, str]] = {
    "account": (rf"[a-z0-9](?:[a-z0-9._-]{{0,61}}[a-z0-9])?@{_LABEL}(?:\.{_LABEL}){{1,8}}",
                "the address of a service account, in lower case"),
    "audience": (r"[\x21-\x7e]{1,2048}", "at most 2048 visible ASCII characters"),
    "database": (r"\(default\)|[a-z][a-z0-9-]{2,61}[a-z0-9]",
                 "(default) or the id of a database: 4 to 63 lower-case letters, digits, hyphens"),
    "handler_url": (rf"(?:https://{_HOST}|http://{_LOOPBACK}){_PORT}{RUN_PATH}",
                    "https:// (http to a loopback host), a host in lower case and exactly "
                    f"{RUN_PATH}, nothing after it"),
    "keys_url": (rf"(?:https://{_HOST}|http://{_LOOPBACK}){_PORT}"
                 r"/[\x21\x22\x24-\x5b\x5d-\x7e]{0,2000}",
                 "an https URL (http to a loopback host), host in lower case, no user or fragment"),
    "loopback": (rf"{_LOOPBACK}(?=:){_PORT}", "host:port of this machine, such as 127.0.0.1:8123"),
    "name": (r"[a-z0-9](?:[a-z0-9.:-]{0,61}[a-z0-9])?",
             "at most 63 lower-case letters, digits, dots, colons and hyphens"),
    "path": (r"(?![~\s])[^\x00-\x1f\x7f]{1,4096}(?<!\s)", "a path; ~ is not expanded"),
    "processor": (rf"[A-Za-z0-9_][A-Za-z0-9_.-]{{0,99}}|{_DOTTED}:{_DOTTED}",
                  "extractive, the name of an entry point, or package.module:Class"),
    "queue": (r"(?!(?i:sync-jobs|audio-merge)\Z)[A-Za-z0-9-]{1,100}",
              "the id of a queue of its own (letters, digits, -), not sync-jobs or audio-merge"),
    "redis_url": (rf"rediss?://(?:{_USER}(?::{_USER})?@)?(?:{_HOST}|\[[0-9a-f:.]{{2,45}}\]){_PORT}"
                  r"(?:/[0-9]{0,3})?",
                  "a redis or rediss URL, host in lower case, at most a database number behind it"),
}
# fmt: on


class Fault(NamedTuple):
    """Why a configuration is refused: the settings that it is about, and a text without values."""

    names: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Setting:
    """One declaration: what docs, `check` and error messages say of a setting comes from here.

    `default` and `embedded` (the default of that mode, where it differs) are texts as the
    environment would hold them; None: unset. `low` and `high` bound numbers, ends included.
    `needed` is the mode that does not start without a value.
    """

    name: str
    kind: Kind
    about: str
    default: str | None = None
    embedded: str | None = None
    low: int = 1
    high: int = 0
    needed: DispatchMode | None = None

    @property
    def secret(self) -> bool:
        """Whether the value is never shown: any free text, as anything may be pasted into it."""
        return self.kind in _TEXTS and self.kind != "loopback"

    @property
    def expects(self) -> str:
        """What a value must be, for people."""
        if self.kind in _NUMBERS:
            return f"a whole number{_NUMBERS[self.kind]} from {self.low} to {self.high} in digits"
        if self.kind in _CHOICES:
            return " or ".join(_CHOICES[self.kind])
        return _TEXTS[self.kind][1]

    @property
    def misfit(self) -> Fault:
        """What is said of a value that is refused; the value is not."""
        return Fault((self.name,), f"{self.name} must be {self.expects}")

    def standing(self, mode: DispatchMode) -> Any:
        """Return the value that an unset setting stands for."""
        text = (self.embedded if mode is DispatchMode.EMBEDDED else None) or self.default
        return None if text is None else self.read(text)

    def read(self, text: str) -> Any:
        """Return the value that the text spells, or None where it is refused."""
        if self.kind in _NUMBERS:
            value = int(text) if _NUMBER.fullmatch(text) else 0
            return value if self.low <= value <= self.high else None
        if self.kind in _CHOICES:
            return _CHOICES[self.kind].get(text)
        if not re.fullmatch(_TEXTS[self.kind][0], text, re.ASCII):
            return None
        return Path(text) if self.kind == "path" else text

    def admits(self, value: object) -> bool:
        """Say whether code may construct with the value: as read, or seconds above zero."""
        if value is None:
            return self.default is None
        if self.kind == "seconds" and isinstance(value, int | float):
            return type(value) is not bool and 0 < value <= self.high
        known = self.read(self.show(value))
        return type(known) is type(value) and known == value

    def show(self, value: object) -> str:
        """Return the value as the environment would hold it; the caller masks secrets."""
        if value is None:
            return UNSET
        if isinstance(value, bool):
            return str(value).lower()
        return f"{value:.15g}" if isinstance(value, float) else str(value)


Source = Literal["default", "environment"]


class Described(NamedTuple):
    """One line of `check`: the value is as the environment would hold it, or masked."""

    name: str
    value: str
    source: Source


def setting(name: str, kind: Kind, **declared: Any) -> Any:
    """Return the dataclass field of a setting; outside the embedded mode it has its default."""
    made = Setting(name, kind, **declared)
    default = made.standing(DispatchMode.INLINE)
    return dataclasses.field(default=default, repr=not made.secret, metadata={"setting": made})
