"""Nothing that is printed steers a terminal, whatever it is."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from listen_finalization.cli import printing
from listen_finalization.cli.printing import harmless, print_fields, print_json, print_table

ANY_TEXT = st.text(alphabet=st.characters(), max_size=60)
HOSTILE = "\x1b[2J\x1b]8;;http://x\x07\x9b31m\u202eabc\u2066\u200f\ufeff\ud800\r\n\u2028[red]:bomb:"


def dangerous(text: str) -> set[str]:
    allowed = "\n\u200c\u200d"
    categories = ("Cc", "Cf", "Cs", "Zl", "Zp")
    return {one for one in text if one not in allowed and unicodedata.category(one) in categories}


@given(ANY_TEXT)
@example(HOSTILE)
def test_any_text_becomes_one_harmless_line(text: str) -> None:
    shown = harmless(text)
    assert not dangerous(shown)
    assert "\n" not in shown


@given(st.text(alphabet="abcäöü漢字 -_/:.'\"[]{}👍🏽\u200d", max_size=40))
def test_text_without_controls_stays_as_it_is(text: str) -> None:
    assert harmless(text) == text


def printed(action: Callable[[], None]) -> str:
    """Return what an action prints; hypothesis and `capsys` do not go together."""
    import contextlib
    import io

    held = io.StringIO()
    with contextlib.redirect_stdout(held):
        action()
    return held.getvalue()


@settings(deadline=None)
@given(st.lists(st.tuples(ANY_TEXT, ANY_TEXT), min_size=1, max_size=3))
@example([(HOSTILE, HOSTILE)])
def test_a_table_of_any_cells_is_harmless_and_has_a_line_for_each_row(
    rows: list[tuple[str, str]],
) -> None:
    text = printed(lambda: print_table(("ONE", "TWO"), rows))
    assert not dangerous(text)
    assert text.count("\n") == 1 + len(rows)


@given(st.lists(st.tuples(st.just("name"), ANY_TEXT), max_size=3))
@example([("name", HOSTILE)])
def test_fields_of_any_value_are_harmless(pairs: list[tuple[str, str]]) -> None:
    text = printed(lambda: print_fields(pairs))
    assert not dangerous(text)
    assert text.count("\n") == len(pairs)


@given(st.recursive(ANY_TEXT, lambda inner: st.lists(inner) | st.dictionaries(ANY_TEXT, inner)))
def test_json_is_ascii_and_says_the_same(document: object) -> None:
    text = printed(lambda: print_json(document))
    assert text.isascii()
    assert not dangerous(text)
    assert json.loads(text) == document


def test_markup_and_emoji_codes_in_cells_are_text(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("A",), [("[bold red]x[/] :bomb: [link=file:///etc/passwd]y",)])
    assert "[bold red]x[/] :bomb: [link=file:///etc/passwd]y" in capsys.readouterr().out


def test_a_reader_that_went_away_is_no_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed:
        def write(self, text: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr("sys.stdout", Closed())
    with pytest.raises(printing.NobodyReadsError):
        printing.say("x")
