"""The deploy guide names what exists, and its example is a conversation."""

from __future__ import annotations

import json
import re

import pytest

from deploy.deployment import DEPLOY, ROOT, demanded, read_settings
from listen_finalization.domain.codes import ConversationStatus

GUIDE = (ROOT / "docs" / "deploy.md").read_text("utf-8")
EXAMPLE = ROOT / "examples" / "conversation-document.json"
CONSOLES = "\n".join(re.findall(r"```\n(.*?)```", GUIDE, re.DOTALL))


def test_every_link_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", GUIDE)

    assert links
    assert [link for link in links if not (ROOT / "docs" / link).exists()] == []


def test_every_file_in_a_command_exists() -> None:
    named = set(re.findall(r"(?<=[ @=])((?:deploy|examples)/[\w./-]+)", CONSOLES))

    assert {"deploy/Dockerfile", "deploy/terraform", "examples/conversation-document.json"} <= named
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []
    assert "settings_file=../production.json" in CONSOLES
    assert (DEPLOY / "terraform" / ".." / "production.json").exists()


def test_the_guide_uses_the_names_of_the_settings_file() -> None:
    settings = read_settings()
    image, lock = settings["image"], settings["run_lock"]

    assert f"/{image['repository']}/{image['name']}:$RELEASE" in CONSOLES
    assert f"gcloud artifacts repositories create {image['repository']} " in CONSOLES
    assert f"gcloud secrets create {lock['secret']} " in CONSOLES
    assert f"https://{settings['services']['api']['name']}-" in CONSOLES
    assert f"gcloud tasks queues pause {settings['queue']['name']} " in GUIDE


@pytest.mark.parametrize("target", ["google_firestore_index.jobs", "google_firestore_field.jobs"])
def test_a_target_of_the_guide_is_a_resource(target: str) -> None:
    kind, name = target.split(".")

    assert f"-target={target}" in GUIDE
    assert f'resource "{kind}" "{name}"' in (DEPLOY / "terraform" / "firestore.tf").read_text()


def test_the_example_is_a_conversation_that_can_be_finalized() -> None:
    documents = demanded("google.cloud.firestore_v1.types.document")
    talk = demanded("listen_finalization.outbox.firestore.talk")
    rpc = demanded("listen_finalization.outbox.firestore.rpc")
    told = documents.Document.from_json(json.dumps(json.loads(EXAMPLE.read_text("utf-8"))))
    fields = dict(documents.Document.pb(told).fields)
    name = "projects/p/databases/(default)/documents/users/u/conversations/first"
    document = rpc.Document(name=name, fields=fields, updated=None)

    conversation = talk.decode_conversation("u", "first", document, whole=True)
    content = talk.decode_content(document)

    assert conversation.status is ConversationStatus.IN_PROGRESS
    assert conversation.has_content
    assert conversation.has_room
    assert [segment.speaker for segment in content.segments] == ["Ada", "Tom"]
