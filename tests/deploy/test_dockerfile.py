"""The Dockerfile, read instruction by instruction: Docker itself is not needed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from deploy.deployment import DEPLOY, ROOT

DOCKERFILE = DEPLOY / "Dockerfile"
IGNORED = DEPLOY / "Dockerfile.dockerignore"
INSTRUCTIONS = frozenset(
    [
        "ARG",
        "CMD",
        "COPY",
        "ENTRYPOINT",
        "ENV",
        "EXPOSE",
        "FROM",
        "HEALTHCHECK",
        "RUN",
        "USER",
        "WORKDIR",
    ]
)


class Instruction(NamedTuple):
    """One instruction, continuation lines joined; `stage` counts the FROM lines before it."""

    word: str
    value: str
    stage: int

    @property
    def words(self) -> list[str]:
        """The words of the exec form, or those of the line."""
        if self.value.startswith("["):
            return [str(word) for word in json.loads(self.value)]
        return self.value.split()


def instructions(text: str) -> list[Instruction]:
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines()
    found: list[Instruction] = []
    for line in joined:
        word, _, value = line.partition(" ")
        stage = sum(one.word == "FROM" for one in found)
        found.append(Instruction(word, value.strip(), stage))
    return found


def sources(found: list[Instruction]) -> list[str]:
    """Return what is copied out of the project; what comes from another stage is not."""
    copies = [one.words for one in found if one.word == "COPY"]
    return [name for words in copies if not words[0].startswith("--") for name in words[:-1]]


@pytest.fixture
def found() -> list[Instruction]:
    return instructions(DOCKERFILE.read_text("utf-8"))


def of(found: list[Instruction], word: str, stage: int = 2) -> list[Instruction]:
    return [one for one in found if one.word == word and one.stage == stage]


def test_every_instruction_is_known(found: list[Instruction]) -> None:
    assert {one.word for one in found} <= INSTRUCTIONS
    assert [one.word for one in found if one.stage == 0] == ["ARG", "FROM"]


def test_what_is_copied_exists(found: list[Instruction]) -> None:
    named = sources(found)

    assert "requirements/production.txt" in named
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_a_source_that_is_not_there_is_noticed() -> None:
    assert sources(instructions("FROM a\nCOPY requirements/none.txt src ./\n")) == [
        "requirements/none.txt",
        "src",
    ]


def test_the_build_context_holds_what_is_copied_and_nothing_else(found: list[Instruction]) -> None:
    lines = [line for line in IGNORED.read_text("utf-8").splitlines() if not line.startswith("#")]

    assert lines[0] == "*"
    assert sorted(line[1:] for line in lines if line.startswith("!")) == sorted(sources(found))


def test_packages_are_installed_by_hash_or_not_from_outside_at_all(
    found: list[Instruction],
) -> None:
    installs = [one.words for one in found if one.word == "RUN" and "install" in one.words]

    assert len(installs) == 3
    assert all("--require-hashes" in words or "--no-index" in words for words in installs)


def test_the_image_runs_as_a_user_without_rights(found: list[Instruction]) -> None:
    [user] = of(found, "USER")
    [made] = [one.words for one in of(found, "RUN") if one.words[0] == "useradd"]

    assert made[made.index("--uid") + 1] == user.value == "10001"
    assert "/usr/sbin/nologin" in made


def test_the_entry_is_the_command_itself_without_a_shell(found: list[Instruction]) -> None:
    [entry], [command] = of(found, "ENTRYPOINT"), of(found, "CMD")

    assert json.loads(entry.value) == ["listen-finalization"]
    assert json.loads(command.value) == ["serve", "--role", "all"]


def test_no_step_needs_a_shell(found: list[Instruction]) -> None:
    steps = [one.value for one in found if one.word in ("RUN", "CMD", "ENTRYPOINT")]

    assert all(isinstance(json.loads(step), list) for step in steps)


def test_health_is_asked_without_another_program(found: list[Instruction]) -> None:
    [check] = of(found, "HEALTHCHECK")
    python, flag, program = json.loads(check.value.partition("CMD ")[2])

    assert (python, flag) == ("python", "-c")
    assert "/livez" in program
    compile(program, "healthcheck", "exec")


def test_nothing_of_the_project_but_the_wheel_reaches_the_image(found: list[Instruction]) -> None:
    assert [one.value for one in of(found, "COPY")] == ["--from=build /app /app"]


def test_no_secret_is_built_in(found: list[Instruction]) -> None:
    settings = [one.value for one in found if one.word in ("ENV", "ARG")]

    assert not [value for value in settings if re.search(r"FINALIZATION|TOKEN|KEY|PASSWORD", value)]


def test_python_is_one_that_the_package_supports(found: list[Instruction]) -> None:
    [version] = [one.value for one in found if one.word == "ARG"]
    wanted = re.search(r'requires-python = ">=3\.(\d+)"', Path(ROOT, "pyproject.toml").read_text())

    assert wanted is not None
    got = re.fullmatch(r"PYTHON=3\.(\d+)-slim-trixie", version)
    assert got is not None
    assert int(got[1]) >= int(wanted[1])
