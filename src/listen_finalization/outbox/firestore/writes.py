"""The writes of a commit; each says which version of its document it was decided on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from google.cloud.firestore_v1.types import common, document, write

from listen_finalization.outbox.firestore.fields import Fields
from listen_finalization.outbox.firestore.rpc import Document

_WRITE = write.Write.pb()
_DOCUMENT = document.Document.pb()
_MASK = common.DocumentMask.pb()
_GUARD = common.Precondition.pb()


def create(name: str, fields: Fields) -> Any:
    """Write a document that must not be there yet."""
    return _WRITE(update=_DOCUMENT(name=name, fields=fields), current_document=_GUARD(exists=False))


def update(seen: Document, fields: Fields, mask: Sequence[str]) -> Any:
    """Write the fields that `mask` names, where the document is still as it was seen.

    A field of the mask that is not among `fields` is removed; every other field stays.
    """
    return _WRITE(
        update=_DOCUMENT(name=seen.name, fields=fields),
        update_mask=_MASK(field_paths=mask),
        current_document=_GUARD(update_time=seen.updated),
    )


def touch(seen: Document) -> Any:
    """Change nothing and let the commit fail where the document is not as it was seen."""
    return update(seen, {}, ())


def remove(seen: Document) -> Any:
    """Delete the document where it is still as it was seen."""
    return _WRITE(delete=seen.name, current_document=_GUARD(update_time=seen.updated))


def merge(name: str, fields: Mapping[str, Any], mask: Sequence[str]) -> Any:
    """Write some fields of a document of ours, made where absent; another write guards it."""
    return _WRITE(update=_DOCUMENT(name=name, fields=fields), update_mask=_MASK(field_paths=mask))


def drop(name: str) -> Any:
    """Delete a document of ours whether or not it is there; another write guards it."""
    return _WRITE(delete=name)
