"""Kinds as Agent Skills: each has the form of their specification."""

import hashlib
import json
import re

import pytest

from gateway.agents.tools.skills import KindSkills, entry_of, skill_text
from gateway.errors import NotFound
from tests.harness.catalog import shipped_catalog

KINDS = list(shipped_catalog())


class OneConnected:
    """A backend with a connector of one kind."""

    catalog = shipped_catalog()

    async def connectors(self, caller):
        class Connector:
            kind = "team-chat"

        return [Connector()]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_skill_begins_with_its_frontmatter_and_has_the_digest_of_its_text(kind):
    entry, text = entry_of(kind), skill_text(kind)

    opened, _, body = text.partition("\n---\n")
    members = dict(line.split(": ", 1) for line in opened.splitlines()[1:])
    assert opened.startswith("---\n")
    assert {name: json.loads(value) for name, value in members.items()} == entry["frontmatter"]
    assert entry["uri"] == f"skill://{entry['frontmatter']['name']}/SKILL.md"
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", entry["frontmatter"]["name"])
    assert 0 < len(entry["frontmatter"]["description"]) <= 1024
    assert entry["resources"] == [
        {"uri": entry["uri"], "digest": f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"}
    ]
    assert body.strip().startswith(f"# {kind.spec.application}\n")


async def test_skills_of_connected_kinds_are_listed_and_all_can_be_read():
    skills = KindSkills(OneConnected())

    class Asked:
        caller = None

    listed = await skills.listed(Asked())

    assert [each["uri"] for each in listed.items] == ["skill://team-chat/SKILL.md"]
    assert (await skills.entry(Asked(), "skill://jira/SKILL.md"))["frontmatter"]["name"] == "jira"
    assert "# Jira" in await skills.text("skill://jira/SKILL.md")


@pytest.mark.parametrize("uri", ["skill://Jira/SKILL.md", "skill://nothing/SKILL.md", "skill://jira", "skill://"])
async def test_another_uri_is_no_skill(uri):
    with pytest.raises(NotFound, match="there is no such skill"):
        await KindSkills(OneConnected()).text(uri)
