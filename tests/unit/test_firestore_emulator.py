"""The starter of the Firestore emulator says what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from listen_finalization.testing.firestore_emulator import (
    EmulatorMissingError,
    EmulatorSilentError,
    emulator_command,
    firestore_emulator,
)


def _tool(directory: Path, name: str, script: str) -> None:
    tool = directory / name
    tool.write_text(f"#!/bin/sh\n{script}\n", "utf-8")
    tool.chmod(0o755)


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that is the whole search path."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def _sdk(tools: Path) -> Path:
    """Make an SDK whose emulator is an empty file."""
    jar = tools / "platform/cloud-firestore-emulator/cloud-firestore-emulator.jar"
    jar.parent.mkdir(parents=True)
    jar.touch()
    _tool(tools, "gcloud", f"echo {tools}")
    return jar


def test_missing_gcloud_is_named(tools: Path) -> None:
    with pytest.raises(EmulatorMissingError, match="gcloud"):
        emulator_command(1)


def test_missing_java_is_named(tools: Path) -> None:
    _sdk(tools)
    with pytest.raises(EmulatorMissingError, match="java"):
        emulator_command(1)


def test_missing_component_is_named(tools: Path) -> None:
    _sdk(tools).unlink()
    _tool(tools, "java", "exit 0")
    with pytest.raises(EmulatorMissingError, match="components install"):
        emulator_command(1)


def test_sdk_that_does_not_answer_is_told(tools: Path) -> None:
    _tool(tools, "gcloud", "exit 1")
    _tool(tools, "java", "exit 0")
    with pytest.raises(EmulatorMissingError, match="SDK"):
        emulator_command(1)


def test_emulator_is_java_itself_on_loopback(tools: Path) -> None:
    jar = _sdk(tools)
    _tool(tools, "java", "exit 0")
    command = emulator_command(4711)
    assert command[0] == str(tools / "java")
    assert str(jar) in command
    assert command[-2:] == ["--host=127.0.0.1", "--port=4711"]


def test_emulator_that_ends_at_once_is_not_waited_for(tools: Path) -> None:
    _sdk(tools)
    _tool(tools, "java", "exit 3")
    with pytest.raises(EmulatorSilentError), firestore_emulator():
        pass
