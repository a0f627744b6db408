"""Policies in Cedar: the versions of a policy, and where a call comes from."""

from enum import StrEnum
from typing import Annotated

from msgspec import Struct

from gateway.contract.members import Id, ListOf, Time, member

_CEDAR = 'permit(principal, action in Action::"read", resource);'


class PolicyMode(StrEnum):
    """Whether a policy decides."""

    #: it decides
    ENFORCE = "enforce"
    #: what it would have decided is counted and logged
    SHADOW = "shadow"


class Surface(StrEnum):
    """Where a call comes from, as `context.surface` of policies names it."""

    HTTP = "http"
    MCP = "mcp"
    CONSOLE = "console"
    BATCH = "batch"
    SCHEDULE = "schedule"
    #: reading records of events
    EVENTS = "events"


class PolicyView(Struct, frozen=True, kw_only=True):
    """One version of a policy."""

    name: Annotated[str, member("The policy's name.", "read-only")]
    version: Annotated[int, member("Its number; the next change makes the next one.", 1)]
    mode: Annotated[PolicyMode, member("`enforce` decides; `shadow` only reports.")]
    cedar: Annotated[str, member("The text in Cedar.", _CEDAR)]
    description: Annotated[str | None, member("What it is for.")]
    created_at: Annotated[Time, member("When this version was stored.")]
    created_by: Annotated[Id | None, member("The client that stored this version.")]


class PolicyList(ListOf[PolicyView], frozen=True):
    """The organization's policies by name, or the versions of one, the newest first."""
