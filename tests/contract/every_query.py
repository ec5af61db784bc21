"""Every query of the production store, sent once in each form that it has."""

from __future__ import annotations

from listen_finalization.domain.codes import Status
from listen_finalization.domain.commands import Admit
from listen_finalization.domain.content import Segment

from .firestore_subject import FirestoreSubject

UID = "ada"


async def send_every_query(subject: FirestoreSubject) -> None:
    """Admit two jobs and ask for all that can be asked for, first pages and later ones."""
    for name in ("one", "two"):
        await subject.conversations.append(UID, name, [Segment("s", "a", 0.0, 1.0, "words")])
        await subject.outbox.apply(Admit(UID, name))
    subject.advance(3_600_000_000)
    page = await subject.outbox.due(1)
    await subject.outbox.due(1, after=page.rows[0])
    await subject.outbox.leases(1)
    for status in (None, *Status):
        listed = await subject.outbox.list(status=status, limit=1)
        if listed.cursor is not None:
            await subject.outbox.list(status=status, limit=1, cursor=listed.cursor)
    await subject.outbox.counts()
    await subject.outbox.oldest()
    await subject.conversations.find(UID, "one")
    await subject.records.list("flag")
    await subject.records.list("flag", prefix="a")
