"""cfg-numbers: blank, zero, negative and odd numbers in settings, for each numeric setting."""

from __future__ import annotations

from itertools import product

import pytest

from listen_finalization.domain.budgets import DispatchMode
from listen_finalization.errors import SettingsError
from listen_finalization.settings import BY_FIELD, SETTINGS, Setting, Settings
from listen_finalization.stack.production import Role

from .command import cli

NUMERIC = [one for one in SETTINGS if one.kind in ("count", "seconds", "days")]
FIELD = {one.name: field for field, one in BY_FIELD.items()}
NOT_THE_NUMBER = {
    "empty": "",
    "one blank": " ",
    "blanks": " \t\n ",
    "no-break space": "\u00a0",
    "zero": "0",
    "zeros": "000",
    "minus zero": "-0",
    "negative": "-1",
    "fraction": "5.0",
    "comma": "5,0",
    "thousands": "1_000",
    "exponent": "1e3",
    "padded": " 7 ",
    "newline": "7\n",
    "unit": "5s",
    "infinite": "inf",
    "infinity": "-Infinity",
    "not a number": "nan",
    "thirty digits": "7" * 30,
    "five thousand digits": "7" * 5_000,
    "full width": "\uff11\uff12",
    "arabic": "\u0661\u0662",
    "superscript": "5\u00b2",
    "plus": "+5",
    "leading zero": "05",
    "hexadecimal": "0x1f",
    "true": "true",
    "none": "None",
    "never": "never",
    "unlimited": "unlimited",
    "minus one as unlimited": "-1",
    "quoted": '"5"',
    "NUL": "5\x00",
}
MODES = {
    DispatchMode.INLINE: {},
    DispatchMode.EMBEDDED: {"LISTEN_FINALIZATION_DISPATCH_MODE": "embedded"},
    DispatchMode.CLOUD_TASKS: {
        "LISTEN_FINALIZATION_DISPATCH_MODE": "cloud_tasks",
        "LISTEN_FINALIZATION_TASKS_QUEUE": "conversation-finalization",
        "LISTEN_FINALIZATION_TASKS_HANDLER_URL": (
            "https://worker.example.com/v1/conversation-finalization-jobs/run"
        ),
        "LISTEN_FINALIZATION_TASKS_OIDC_AUDIENCE": "https://worker.example.com",
        "LISTEN_FINALIZATION_TASKS_INVOKER_SA": "tasks@omi-prod.iam.gserviceaccount.com",
        "SYNC_TASKS_PROJECT": "omi-prod",
        "SYNC_TASKS_LOCATION": "us-central1",
    },
}

COMMANDS = [
    *(("serve", "--role", role.value, "--port", "0") for role in Role),
    ("up", "--port", "0"),
    ("check",),
    ("demo",),
]
"""Every service and two commands that read the settings."""

numeric = pytest.mark.parametrize("one", NUMERIC, ids=lambda one: one.name)
every_mode = pytest.mark.parametrize("mode", list(DispatchMode))


def refusal(env: dict[str, str]) -> str:
    with pytest.raises(SettingsError) as caught:
        Settings.from_environment(env)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    return str(caught.value)


@numeric
@every_mode
def test_an_unset_number_is_its_documented_default(one: Setting, mode: DispatchMode) -> None:
    settings = Settings.from_environment(MODES[mode])

    default = one.embedded if mode is DispatchMode.EMBEDDED and one.embedded else one.default
    expected = None if default is None else int(default)
    assert getattr(settings, FIELD[one.name]) == expected


@numeric
@pytest.mark.parametrize("text", NOT_THE_NUMBER.values(), ids=NOT_THE_NUMBER.keys())
@every_mode
def test_an_odd_number_is_refused_by_name_and_never_by_value(
    one: Setting, text: str, mode: DispatchMode
) -> None:
    message = refusal({**MODES[mode], one.name: text})

    blank = f"{one.name} is blank: give it a value or remove it"
    words = blank if not text.strip() else f"{one.name} must be {one.expects}"
    assert message == f"settings that cannot work:\n- {words}"


@numeric
def test_a_number_is_bounded_on_both_sides(one: Setting) -> None:
    assert 1 <= one.low < one.high < 100_000
    for value in (one.low - 1, one.high + 1):
        assert one.read(str(value)) is None
    assert [one.read(str(value)) for value in (one.low, one.high)] == [one.low, one.high]


@numeric
def test_a_plain_number_is_taken_as_it_is(one: Setting) -> None:
    value = 15 if one.default is None else int(one.default)
    settings = Settings.from_environment({one.name: str(value)})

    assert getattr(settings, FIELD[one.name]) == value
    assert (one.name, str(value), "environment") in settings.described()


def test_every_odd_number_is_told_of_in_one_start() -> None:
    message = refusal({one.name: "soon-canary-9f1c" for one in NUMERIC})

    assert [one.name for one in NUMERIC if one.name not in message] == []
    assert "canary" not in message
    assert len(message.splitlines()) == len(NUMERIC) + 1


@pytest.mark.parametrize(
    ("one", "value"),
    list(product(NUMERIC, [0, -1, float("nan"), float("inf"), 10**30, True, "5"])),
    ids=lambda each: each.name if isinstance(each, Setting) else repr(each),
)
def test_code_cannot_construct_never_at_once_or_unlimited(one: Setting, value: object) -> None:
    with pytest.raises(SettingsError, match=one.name):
        Settings(**{FIELD[one.name]: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("mode", [DispatchMode.INLINE, DispatchMode.CLOUD_TASKS])
def test_services_and_commands_refuse_them_in_the_same_words(
    words: tuple[str, ...], mode: DispatchMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    for one in SETTINGS:
        monkeypatch.delenv(one.name, raising=False)
    broken = {**MODES[mode], **{one.name: "5s-canary-9f1c" for one in NUMERIC}}
    for name, text in broken.items():
        monkeypatch.setenv(name, text)

    ran = cli(*words)

    told = [line.removeprefix("error: ") for line in ran.err.splitlines() if "error: " in line]
    assert told == [line.removeprefix("- ") for line in refusal(broken).splitlines()[1:]]
    assert (ran.code, ran.out) == (1 if words == ("check",) else 2, "")
