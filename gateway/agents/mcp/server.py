"""A server of the protocol: its methods, and the form of their results in each protocol version."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any

import mcp_types as types
import msgspec
from mcp_types.methods import CLIENT_REQUESTS, validate_client_request
from pydantic import ValidationError

from gateway.agents.mcp import headers as header_rules
from gateway.agents.mcp.context import Context
from gateway.agents.mcp.features import (
    Completions,
    Events,
    EventSubscription,
    ListPage,
    Prompts,
    Resources,
    Skills,
    Subscriptions,
    Tasks,
    Tools,
    WebhookDelivery,
)
from gateway.agents.mcp.messages import (
    EVENTS,
    SKILLS,
    SUBSCRIPTION_ID,
    UNSUPPORTED,
    RefusedRequest,
    RpcError,
    invalid_params,
    missing_capability,
    notification,
)
from gateway.agents.mcp.results import Result, page, text, tool_result, without_copy
from gateway.agents.mcp.spans import OTHER, measured
from gateway.errors import GatewayError, InternalError, NotFound
from gateway.foundation.mcp import HANDSHAKE_VERSIONS, TASKS, VERSIONS

log = logging.getLogger(__name__)

#: the experimental capability of a client that reads structured content, and so needs no copy as text
_STRUCTURED = "structuredContent"
#: milliseconds that a client may cache the description of the server
_TTL = 3_600_000
#: methods whose results may be questions to the user
_MAY_ASK = frozenset({"tools/call", "prompts/get", "resources/read"})
#: members of results that exist since 2026-07-28
_NEW_MEMBERS = frozenset({"resultType", "ttlMs", "cacheScope"})

Method = Callable[[Context], Awaitable[Result]]


class Server:
    """Serves requests; it has no state between them."""

    def __init__(
        self,
        name: str,
        version: str,
        *,
        title: str | None = None,
        instructions: str | None = None,
        tools: Tools | None = None,
        resources: Resources | None = None,
        prompts: Prompts | None = None,
        completions: Completions | None = None,
        tasks: Tasks | None = None,
        subscriptions: Subscriptions | None = None,
        events: Events | None = None,
        skills: Skills | None = None,
    ) -> None:
        info = {"name": name, "version": version}
        self._info = info if title is None else {**info, "title": title}
        self._instructions = instructions
        self._tools = tools
        self._resources = resources
        self._prompts = prompts
        self._completions = completions
        self._tasks = tasks
        self._subscriptions = subscriptions
        self._events = events
        self._skills = skills
        self._methods = self._all_methods()

    def _all_methods(self) -> dict[str, Method]:
        methods: dict[str, Method] = {
            "server/discover": self._discover,
            "initialize": self._initialize,
            "ping": self._ping,
        }
        if self._tools:
            methods |= {"tools/list": self._list_tools, "tools/call": self._call_tool}
        if self._resources:
            methods |= {
                "resources/list": self._list_resources,
                "resources/templates/list": self._list_templates,
                "resources/read": self._read_resource,
            }
        if self._prompts:
            methods |= {"prompts/list": self._list_prompts, "prompts/get": self._get_prompt}
        if self._completions:
            methods["completion/complete"] = self._complete
        if self._tasks:
            methods |= {
                "tasks/get": self._get_task,
                "tasks/update": self._update_task,
                "tasks/cancel": self._cancel_task,
            }
        if self._subscriptions:
            methods["subscriptions/listen"] = self._listen
        if self._events:
            methods |= {
                "events/list": self._list_events,
                "events/poll": self._poll_events,
                "events/stream": self._stream_events,
                "events/subscribe": self._subscribe_to_events,
                "events/unsubscribe": self._unsubscribe_from_events,
            }
        if self._skills:
            methods |= {"skills/list": self._list_skills, "skills/get": self._get_skill}
        return methods

    async def serve(self, context: Context) -> Result:
        """The result of one request, in the form of its protocol version; raises RpcError."""
        method = context.message.method
        with measured(context.message, context.version, method if method in self._methods else OTHER) as outcome:
            result = await self._served(context)
            outcome.error_type = "tool_error" if result.get("isError") else ""
            return result

    async def _served(self, context: Context) -> Result:
        method = self._method(context)
        _check_shape(context)
        try:
            return self._rendered(context, await method(context))
        except RpcError:
            raise
        except Exception as error:
            if isinstance(error, GatewayError) and not isinstance(error, InternalError):
                raise RefusedRequest(error) from error
            log.exception("a request failed by a bug")
            raise RpcError(types.INTERNAL_ERROR, "internal error") from error

    def _method(self, context: Context) -> Method:
        name, is_handshake = context.message.method, context.version in HANDSHAKE_VERSIONS
        method = self._methods.get(name)
        # The registry has the methods of each protocol version, but not those of extensions.
        is_extension = name.startswith(("tasks/", "events/", "skills/"))
        is_known = (name, context.version) in CLIENT_REQUESTS or (is_extension and not is_handshake)
        if method is None or not is_known:
            raise RpcError(types.METHOD_NOT_FOUND, f"there is no method {name}")
        return method

    def _rendered(self, context: Context, result: Result) -> Result:
        if context.version in HANDSHAKE_VERSIONS:
            return {name: value for name, value in result.items() if name not in _NEW_MEMBERS}
        kind = result.get("resultType", "complete")
        assert kind != "input_required" or context.message.method in _MAY_ASK
        meta = {types.SERVER_INFO_META_KEY: self._info, **result.get("_meta", {})}
        return {"resultType": kind, **result, "_meta": meta}

    # --- description of the server ---

    def _capabilities(self, *, is_handshake: bool) -> dict[str, Any]:
        registered = {
            "tools": self._tools,
            "resources": self._resources,
            "prompts": self._prompts,
            "completions": self._completions,
        }
        capabilities: dict[str, Any] = {name: {} for name, feature in registered.items() if feature}
        if is_handshake:
            return capabilities
        if self._subscriptions:
            capabilities |= {name: dict(members) for name, members in self._subscriptions.capabilities.items()}
        optional = {TASKS: self._tasks, EVENTS: self._events, SKILLS: self._skills}
        extensions: dict[str, Any] = {name: {} for name, feature in optional.items() if feature}
        return {**capabilities, "extensions": extensions} if extensions else capabilities

    async def _discover(self, context: Context) -> Result:
        return {
            "supportedVersions": list(VERSIONS),
            "capabilities": self._capabilities(is_handshake=False),
            **({"instructions": self._instructions} if self._instructions else {}),
            "ttlMs": _TTL,
            "cacheScope": "public",
        }

    async def _initialize(self, context: Context) -> Result:
        """The handshake of earlier protocol versions; it creates no session."""
        version = context.message.params.get("protocolVersion")
        return {
            "protocolVersion": version if version in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[0],
            "capabilities": self._capabilities(is_handshake=True),
            "serverInfo": self._info,
            **({"instructions": self._instructions} if self._instructions else {}),
        }

    async def _ping(self, context: Context) -> Result:
        return {}

    # --- tools ---

    async def _list_tools(self, context: Context) -> Result:
        assert self._tools
        return _page("tools", await self._tools.listed(context))

    async def _call_tool(self, context: Context) -> Result:
        assert self._tools
        name, arguments = context.message.params["name"], context.message.params.get("arguments") or {}
        tool = await self._tools.named(context, name)
        if tool is None:
            raise invalid_params(f"there is no tool {name!r}; tools/list returns all tools")
        if context.headers and context.version not in HANDSHAKE_VERSIONS:
            header_rules.check_params(tool.input_schema, arguments, context.headers)
        if tool.needs_tasks and not context.message.has_tasks:
            raise missing_capability({"extensions": {TASKS: {}}})
        faults = tool.faults(arguments)
        if faults:
            return tool_result(text("; ".join(faults)), is_error=True)
        result = await tool.call(context, arguments)
        return without_copy(result) if context.can("experimental", _STRUCTURED) else result

    # --- resources, prompts, completions ---

    async def _list_resources(self, context: Context) -> Result:
        assert self._resources
        return _page("resources", await self._resources.listed(context))

    async def _list_templates(self, context: Context) -> Result:
        assert self._resources
        return _page("resourceTemplates", await self._resources.templates(context))

    async def _read_resource(self, context: Context) -> Result:
        assert self._resources
        return await self._resources.read(context, context.message.params["uri"])

    async def _list_prompts(self, context: Context) -> Result:
        assert self._prompts
        return _page("prompts", await self._prompts.listed(context))

    async def _get_prompt(self, context: Context) -> Result:
        assert self._prompts
        params = context.message.params
        return await self._prompts.get(context, params["name"], params.get("arguments") or {})

    async def _complete(self, context: Context) -> Result:
        assert self._completions
        return await self._completions.complete(context, context.message.params)

    # --- tasks ---

    async def _get_task(self, context: Context) -> Result:
        assert self._tasks
        return await self._tasks.get(context, _task_id(context))

    async def _update_task(self, context: Context) -> Result:
        assert self._tasks
        task_id, responses = _task_id(context), context.message.params.get("inputResponses")
        if not isinstance(responses, Mapping):
            raise invalid_params("inputResponses must be an object: the answers, by the keys of the questions")
        await self._tasks.update(context, task_id, responses)
        return {}

    async def _cancel_task(self, context: Context) -> Result:
        assert self._tasks
        await self._tasks.cancel(context, _task_id(context))
        return {}

    # --- subscriptions ---

    async def _listen(self, context: Context) -> Result:
        assert self._subscriptions
        meta = {SUBSCRIPTION_ID: context.message.id}
        honored = self._subscriptions.honored(context, context.message.params["notifications"])
        acknowledgment = {"_meta": meta, "notifications": honored}
        await context.send(notification("notifications/subscriptions/acknowledged", acknowledgment))
        with context.streaming():
            await _send_all(context, self._subscriptions.notifications(context, honored), meta)
        return {"_meta": meta}

    # --- events ---

    async def _list_events(self, context: Context) -> Result:
        assert self._events
        return {"events": list(await self._events.listed(context))}

    async def _poll_events(self, context: Context) -> Result:
        assert self._events
        return await self._events.poll(context, _subscription(context), _count(context, "maxEvents", 1))

    async def _stream_events(self, context: Context) -> Result:
        assert self._events
        meta = {SUBSCRIPTION_ID: context.message.id}
        with context.streaming():
            await _send_all(context, self._events.stream(context, _subscription(context)), meta)
        return {"_meta": meta}

    async def _subscribe_to_events(self, context: Context) -> Result:
        assert self._events
        receiver = _receiver(context)
        secret = receiver.get("secret")
        if not isinstance(secret, str):
            raise invalid_params("delivery.secret must be a string: whsec_ and base64")
        if receiver.get("mode", "webhook") != "webhook":
            raise RpcError(
                UNSUPPORTED, "Unsupported", {"feature": "deliveryMode", "value": str(receiver["mode"])[:100]}
            )
        has_ttl = "ttlMs" in context.message.params
        delivery = WebhookDelivery(receiver["url"], secret, _count(context, "ttlMs", 0) if has_ttl else msgspec.UNSET)
        return await self._events.subscribe(context, _subscription(context), delivery)

    async def _unsubscribe_from_events(self, context: Context) -> Result:
        assert self._events
        await self._events.unsubscribe(context, _subscription(context), _receiver(context)["url"])
        return {}

    # --- skills ---

    async def _list_skills(self, context: Context) -> Result:
        assert self._skills
        return _page("skills", await self._skills.listed(context))

    async def _get_skill(self, context: Context) -> Result:
        assert self._skills
        uri = context.message.params.get("uri")
        if not isinstance(uri, str):
            raise invalid_params("uri must be a string: the URI of a SKILL.md")
        try:
            return {"skill": dict(await self._skills.entry(context, uri))}
        except NotFound as error:
            raise invalid_params(f"{uri}: {error.detail}") from error


def _check_shape(context: Context) -> None:
    """Raise RpcError if params or _meta do not match the version's schema, or if a list has a cursor."""
    message = context.message
    if (message.method, context.version) in CLIENT_REQUESTS:
        try:
            validate_client_request(message.method, context.version, message.params)
        except ValidationError as error:
            faults = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors(include_url=False)]
            raise invalid_params("; ".join(faults)) from error
    elif types.CLIENT_CAPABILITIES_META_KEY not in message.meta:
        raise invalid_params(f"_meta lacks {types.CLIENT_CAPABILITIES_META_KEY}")
    if message.method.endswith("/list") and message.params.get("cursor") is not None:
        raise invalid_params("cursor is invalid: every list has one page")


def _page(member: str, listing: ListPage) -> Result:
    return page(member, listing.items, ttl_ms=listing.ttl_ms, scope=listing.scope)


async def _send_all(context: Context, notifications: AsyncIterator[dict[str, Any]], meta: Mapping[str, Any]) -> None:
    """Send each notification with the id of its subscription."""
    async with aclosing(notifications) as items:  # type: ignore[type-var]
        async for item in items:
            params = {**item["params"], "_meta": {**item["params"].get("_meta", {}), **meta}}
            await context.send({**item, "params": params})


def _subscription(context: Context) -> EventSubscription:
    """The event type, arguments and cursor of a request; raises RpcError."""
    params = context.message.params
    name, cursor, arguments = params.get("name"), params.get("cursor"), params.get("arguments")
    if not isinstance(name, str):
        raise invalid_params("name must be a string: an event type of events/list")
    if not isinstance(cursor, str | None):
        raise invalid_params("cursor must be a string or null")
    if not isinstance(arguments, Mapping | None):
        raise invalid_params("arguments must be an object")
    return EventSubscription(name, arguments or {}, cursor, _count(context, "maxAgeMs", 0))


def _receiver(context: Context) -> Mapping[str, Any]:
    """The `delivery` of a request, with its URL; raises RpcError."""
    delivery = context.message.params.get("delivery")
    if not isinstance(delivery, Mapping) or not isinstance(delivery.get("url"), str):
        raise invalid_params("delivery must be an object with the url of the receiver")
    return delivery


def _count(context: Context, name: str, least: int) -> int | None:
    value = context.message.params.get(name)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < least):
        raise invalid_params(f"{name} must be an integer of at least {least}")
    return value


def _task_id(context: Context) -> str:
    """The task id of a request; raises RpcError, also if the client did not declare the extension."""
    if not context.message.has_tasks:
        raise missing_capability({"extensions": {TASKS: {}}})
    task_id = context.message.params.get("taskId")
    if not isinstance(task_id, str):
        raise invalid_params("taskId must be a string")
    return task_id
