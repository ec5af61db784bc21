"""Which data directory and which settings a command works with."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from listen_finalization.cli.exit_codes import ExitCode
from listen_finalization.cli.faults import CommandError
from listen_finalization.domain.budgets import DispatchMode
from listen_finalization.errors import SettingsError
from listen_finalization.outbox.database import DATABASE
from listen_finalization.settings import BY_FIELD, Settings

MODE = BY_FIELD["dispatch_mode"].name
DATA = BY_FIELD["data_dir"].name


def setting_of(field: str, given: str | None = None, env: Mapping[str, str] | None = None) -> Any:
    """Return one setting as the embedded mode reads it, whatever the others hold.

    `given` goes before the environment. Raises `SettingsError`, naming the setting.
    """
    one = BY_FIELD[field]
    text = given if given is not None else (os.environ if env is None else env).get(one.name)
    if text is None:
        return one.standing(DispatchMode.EMBEDDED)
    value = one.read(text)
    if value is None:
        raise SettingsError(one.misfit.text)
    return value


def embedded_settings(data: str | None, env: Mapping[str, str] | None = None) -> Settings:
    """Read all settings for a stack of this process; embedded is the mode where none is named.

    `data` goes before the environment's directory. Raises `SettingsError`.
    """
    texts = dict(os.environ if env is None else env)
    if data is not None:
        texts[DATA] = data
    settings = Settings.from_environment(texts, defaults={MODE: DispatchMode.EMBEDDED.value})
    if settings.dispatch_mode is not DispatchMode.EMBEDDED:
        raise SettingsError(f"{MODE} must be {DispatchMode.EMBEDDED} or unset for this command")
    return settings


def named(data: str | None) -> str:
    """Return what a message calls the data directory; a path of the environment is not shown."""
    if data is not None:
        return data
    return f"the directory of {DATA}" if DATA in os.environ else "./data"


def existing(data: str | None) -> Path:
    """Return the data directory of a stack that was started before. Creates nothing."""
    directory: Path = setting_of("data_dir", data)
    if not (directory / DATABASE).is_file():
        raise CommandError(
            f"{named(data)}: no data directory of a stack",
            code=ExitCode.UNAVAILABLE,
            remedy="give --data DIR, the directory that `listen-finalization up` was started with",
            word="no_data_directory",
        )
    return directory


@contextlib.contextmanager
def kept_or_temporary(data: str | None) -> Iterator[str]:
    """Yield the given directory, or a private one that is removed with all that it holds."""
    if data is not None:
        yield data
        return
    with tempfile.TemporaryDirectory(
        prefix="listen-finalization-", ignore_cleanup_errors=True
    ) as made:
        yield made
