"""The scanner finds what is there: a test of silence is worth no more than its ears."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest

from listen_finalization.testing.canary import KeptLog, canary, leaks

TEXT = canary("heard")
FORMS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "json": json.dumps,
    "json without ascii": lambda text: json.dumps(text, ensure_ascii=False),
    "json in json": lambda text: json.dumps(json.dumps({"a": text})),
    "url": lambda text: quote(text, safe=""),
    "url form": quote_plus,
    "hex": lambda text: text.encode().hex(),
    "hex upper": lambda text: text.encode().hex().upper(),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 inside": lambda text: base64.b64encode(f"xy{text}z".encode()).decode(),
    "base64 inside by one": lambda text: base64.b64encode(f"x{text}zz".encode()).decode(),
    "base64url": lambda text: base64.urlsafe_b64encode(f"?{text}?".encode()).decode(),
    "repr": repr,
    "bytes": lambda text: repr(text.encode()),
    "cut off in front": lambda text: text[10:],
    "lower": str.lower,
    "upper": str.upper,
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_leak_is_found(form: str) -> None:
    place = f"before {FORMS[form](TEXT)} after"
    found = leaks({"heard": TEXT}, {"quiet": "nothing here", "loud": place})
    assert {(leak.canary, leak.place) for leak in found} == {("heard", "loud")}
    assert TEXT not in repr(found)


def test_silence_is_silence() -> None:
    places: dict[str, str | bytes] = {"a": canary("other"), "b": b"\xff\xfe", "c": ""}
    assert leaks({"heard": TEXT}, places) == []


def test_bytes_are_searched_as_text() -> None:
    assert leaks({"heard": TEXT}, {"body": TEXT.encode()})


@pytest.mark.parametrize(
    "said",
    [
        lambda log: log.info("%s", TEXT),
        lambda log: log.debug("quiet", extra={"field": TEXT}),
        lambda log: log.error("quiet", exc_info=ValueError(TEXT)),
        lambda log: log.error("quiet", exc_info=ExceptionGroup("g", [ValueError(TEXT)])),
    ],
)
def test_the_kept_log_hears_messages_fields_and_exceptions(
    said: Callable[[logging.Logger], None],
) -> None:
    kept, log = KeptLog(), logging.getLogger("canary.heard")
    log.addHandler(kept)
    log.setLevel(logging.DEBUG)
    log.propagate = False
    try:
        said(log)
    finally:
        log.removeHandler(kept)
    assert leaks({"heard": TEXT}, {"log": kept.text})


def test_a_line_that_cannot_be_made_is_heard_too() -> None:
    kept = KeptLog()
    kept.handle(logging.LogRecord("canary", logging.ERROR, "", 1, "%d %s", (TEXT,), None))
    assert leaks({"heard": TEXT}, {"log": kept.text})
