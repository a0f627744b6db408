"""The features of a server: tools, resources, prompts, completions, tasks and subscriptions."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import jsonschema_rs
import msgspec

from gateway.agents.mcp.context import Context
from gateway.agents.mcp.results import Result
from gateway.kinds.breadth import MAX_CHECKS, breadth_of
from gateway.kinds.patterns import without_patterns
from gateway.kinds.schema_errors import first_errors, has_more_values_than

Call = Callable[[Context, Mapping[str, Any]], Awaitable[Result]]


@dataclass(frozen=True, kw_only=True)
class ListedTool:
    """A tool: the members that `tools/list` returns."""

    name: str
    description: str
    input_schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "object"})
    output_schema: Mapping[str, Any] | None = None
    annotations: Mapping[str, Any] | None = None
    title: str | None = None

    def as_document(self) -> dict[str, Any]:
        """The tool as an item of `tools/list`."""
        members = {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": self.input_schema,
            "outputSchema": self.output_schema,
            "annotations": self.annotations,
        }
        return {name: value for name, value in members.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class ServerTool(ListedTool):
    """A tool, and the function that runs it."""

    call: Call
    #: whether it needs a client with the extension for tasks
    needs_tasks: bool = False

    @cached_property
    def validator(self) -> jsonschema_rs.Draft202012Validator:
        """Checks all but patterns, of which a tool's call checks those of the params of operations."""
        return jsonschema_rs.Draft202012Validator(without_patterns(dict(self.input_schema)))

    @cached_property
    def breadth(self) -> int:
        """How much of its schema one value is checked with at most."""
        return breadth_of(self.input_schema, self.input_schema.get("$defs", {}))

    def faults(self, arguments: Mapping[str, Any]) -> list[str]:
        """The first faults of the arguments, one message each."""
        most = MAX_CHECKS // self.breadth
        if has_more_values_than(most, dict(arguments)):
            return [f"arguments: more than {most:,} values; split the call"]
        return [
            f"{'.'.join(map(str, fault.instance_path)) or 'arguments'}: {fault.message}"
            for fault in first_errors(self.validator, dict(arguments), self.breadth)
        ]


@dataclass(frozen=True)
class ListPage:
    """A complete list. Clients may cache it for `ttl_ms`; `scope` is `public`, or `private` to the caller."""

    items: Sequence[Mapping[str, Any] | msgspec.Raw]
    ttl_ms: int = 300_000
    scope: str = "private"


class Tools(Protocol):
    """The tools that a caller may use."""

    async def listed(self, context: Context) -> ListPage:
        """All tools, in a fixed order."""

    async def named(self, context: Context, name: str) -> ServerTool | None:
        """The tool with that name."""


class Resources(Protocol):
    """The resources that a client can read by URI."""

    async def listed(self, context: Context) -> ListPage: ...

    async def templates(self, context: Context) -> ListPage: ...

    async def read(self, context: Context, uri: str) -> Result:
        """`{contents, ttlMs, cacheScope}`; raises RpcError for an unknown URI."""


class Prompts(Protocol):
    """Prompts: messages with which a client begins a conversation."""

    async def listed(self, context: Context) -> ListPage: ...

    async def get(self, context: Context, name: str, arguments: Mapping[str, str]) -> Result: ...


class Completions(Protocol):
    """Suggestions for an argument of a prompt or a resource template."""

    async def complete(self, context: Context, params: Mapping[str, Any]) -> Result: ...


class Tasks(Protocol):
    """Calls that continue in the background. Each method raises RpcError for a task that is not the caller's."""

    async def get(self, context: Context, task_id: str) -> Result: ...

    async def update(self, context: Context, task_id: str, responses: Mapping[str, Any]) -> None: ...

    async def cancel(self, context: Context, task_id: str) -> None: ...


class Subscriptions(Protocol):
    """Notifications that a client receives on an open stream."""

    #: the `listChanged` and `subscribe` members of the capabilities, by feature
    capabilities: Mapping[str, Mapping[str, Any]]

    def honored(self, context: Context, subscription_filter: Mapping[str, Any]) -> dict[str, Any]:
        """The part of a filter that is served."""

    def notifications(self, context: Context, honored: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """Notifications as they occur, until the server stops."""


@dataclass(frozen=True)
class EventSubscription:
    """An event type with arguments; events after the cursor, or new events if there is none."""

    name: str
    arguments: Mapping[str, Any]
    cursor: str | None
    #: events older than this are left out
    max_age_ms: int | None


@dataclass(frozen=True)
class WebhookDelivery:
    """The receiver of a subscription by webhook, which the client names."""

    url: str
    secret: str
    #: the suggested lifetime in milliseconds: None for no expiry, UNSET for the server's default
    ttl_ms: int | msgspec.UnsetType | None


class Events(Protocol):
    """Events that clients poll or stream, or that a receiver gets by webhook."""

    async def listed(self, context: Context) -> Sequence[Mapping[str, Any]]:
        """The event types."""

    async def poll(self, context: Context, subscription: EventSubscription, max_events: int | None) -> Result:
        """`{events, cursor, truncated, hasMore, nextPollMs}`; raises RpcError."""

    def stream(self, context: Context, subscription: EventSubscription) -> AsyncGenerator[dict[str, Any], None]:
        """Notifications until the server stops. The first is `notifications/events/active`; raises RpcError before."""

    async def subscribe(self, context: Context, subscription: EventSubscription, delivery: WebhookDelivery) -> Result:
        """`{id, refreshBefore, cursor, truncated, deliveryStatus?}`; raises RpcError."""

    async def unsubscribe(self, context: Context, subscription: EventSubscription, url: str) -> None:
        """End a subscription by webhook; raises RpcError."""


class Skills(Protocol):
    """Agent Skills (SEP-2640); their files are resources."""

    async def listed(self, context: Context) -> ListPage: ...

    async def entry(self, context: Context, uri: str) -> Mapping[str, Any]:
        """The item of the list for a `SKILL.md`; raises NotFound."""


@dataclass(frozen=True)
class StaticTools:
    """Tools that are the same for every caller."""

    tools: Sequence[ServerTool]

    @cached_property
    def _by_name(self) -> dict[str, ServerTool]:
        return {tool.name: tool for tool in self.tools}

    async def listed(self, context: Context) -> ListPage:
        return ListPage([tool.as_document() for tool in self.tools], scope="public")

    async def named(self, context: Context, name: str) -> ServerTool | None:
        return self._by_name.get(name)
