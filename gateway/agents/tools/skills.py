"""Kinds as Agent Skills (SEP-2640): what an application offers, and how its operations are found and run.

https://agentskills.io/specification has the form of `SKILL.md` and of names.
"""

import hashlib
import re
from textwrap import shorten
from typing import Any

import msgspec

from gateway.agents.mcp.context import Context
from gateway.agents.mcp.features import ListPage
from gateway.agents.tools.backend import Backend
from gateway.errors import NotFound
from gateway.foundation.aio.turns import in_thread, mapped
from gateway.kinds.agent_docs import markdown_of, overview
from gateway.kinds.catalog import Kind

SCHEME = "skill://"
#: names of skills; kinds with another name are no skills
_NAME = re.compile(r"(?=.{1,64}$)[a-z0-9]+(?:-[a-z0-9]+)*")
#: maximum characters of a description
_MAX_DESCRIPTION = 1024


class KindSkills:
    """`skill://{kind}/SKILL.md`, a skill of one file for each kind."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    async def listed(self, context: Context) -> ListPage:
        """The skills of the caller's connectors: the others would only fill the model's context."""
        connected = {each.kind for each in await self._backend.connectors(context.caller)}
        kinds = [kind for kind in self._backend.catalog if kind.name in connected and _NAME.fullmatch(kind.name)]
        return ListPage(await mapped(entry_of, kinds, is_large=lambda _: True))

    async def entry(self, context: Context, uri: str) -> dict[str, Any]:
        """The entry of a skill, whether or not it is listed; raises NotFound."""
        return await in_thread(entry_of, self._kind(uri))

    async def text(self, uri: str) -> str:
        """The content of a `SKILL.md`; raises NotFound."""
        return await in_thread(skill_text, self._kind(uri))

    def _kind(self, uri: str) -> Kind:
        for kind in self._backend.catalog:
            if _NAME.fullmatch(kind.name) and skill_uri(kind) == uri:
                return kind
        raise NotFound("there is no such skill; skills/list returns those of connected applications")


def skill_uri(kind: Kind) -> str:
    return f"{SCHEME}{kind.name}/SKILL.md"


def entry_of(kind: Kind) -> dict[str, Any]:
    """The skill as an item of `skills/list`, with the digest of its file."""
    digest = hashlib.sha256(skill_text(kind).encode()).hexdigest()
    uri = skill_uri(kind)
    return {
        "uri": uri,
        "frontmatter": frontmatter_of(kind),
        "resources": [{"uri": uri, "digest": f"sha256:{digest}"}],
    }


def frontmatter_of(kind: Kind) -> dict[str, str]:
    description = f"Use it to work with {kind.spec.application}. {kind.spec.description}"
    return {"name": kind.name, "description": shorten(description, _MAX_DESCRIPTION)}


def skill_text(kind: Kind) -> str:
    """The `SKILL.md` of a kind: the same for every caller, so that hosts can compare its digest."""
    # A JSON text is one of YAML too.
    members = (f"{name}: {msgspec.json.encode(value).decode()}" for name, value in frontmatter_of(kind).items())
    use = (
        f'Find an operation with `find_operations` and the kind "{kind.name}", or choose one below and write '
        f"`{kind.name}.entity.action`. `describe_operation` shows its params; `read` and `write` run it. "
        f"The resource `gateway://kinds/{kind.name}` describes all operations."
    )
    title, *rest = overview(kind)
    blocks = [title, {"type": "paragraph", "text": use}, *rest]
    return "\n".join(["---", *members, "---", "", markdown_of(blocks), ""])
