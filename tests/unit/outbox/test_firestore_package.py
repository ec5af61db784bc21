"""Where the google extra is needed, and where it is not."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from listen_finalization.errors import ExtraMissingError

PACKAGE = "listen_finalization.outbox.firestore"


def test_package_without_its_extra_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(PACKAGE)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "google.cloud.firestore_v1", None)
    with pytest.raises(ExtraMissingError) as missing:
        importlib.import_module(PACKAGE)
    assert str(missing.value) == (
        "the 'google' extra is not installed: pip install 'listen-finalization[google]'"
    )


def test_embedded_store_and_suite_import_nothing_of_google() -> None:
    code = (
        "import sys; import listen_finalization.outbox.sqlite;"
        " import listen_finalization.outbox.conformance;"
        " print([name for name in sys.modules if name.split('.')[0] in ('google', 'grpc')])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
