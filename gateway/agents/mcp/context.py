"""The context of a request: its caller, the client's capabilities, and methods that send progress and log events."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import mcp_types as types

from gateway.agents.mcp.messages import Message, missing_capability, notification

Send = Callable[[Mapping[str, Any]], Awaitable[None]]

#: levels of RFC 5424, the least severe first
_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


@dataclass(frozen=True, kw_only=True)
class Context:
    """The context of a call to a tool, prompt or resource."""

    message: Message
    version: str
    #: sends a notification for this request
    send: Send
    #: the caller that the transport authenticated; the protocol does not read it
    caller: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    #: context manager of a request that stays open to send notifications; raises RpcError if there are too many
    streaming: Callable[[], AbstractContextManager[None]] = nullcontext

    @property
    def capabilities(self) -> Mapping[str, Any]:
        return self.message.capabilities

    def can(self, capability: str, mode: str | None = None) -> bool:
        """Whether the client declared a capability, and a mode of it; `elicitation` without modes means forms only."""
        declared = self.capabilities.get(capability)
        if not isinstance(declared, Mapping) or mode is None:
            return isinstance(declared, Mapping)
        return mode in declared or (mode == "form" and not declared)

    def require(self, **capabilities: Any) -> None:
        """Raise RpcError unless the client declared each of the capabilities."""
        missing = {name: value for name, value in capabilities.items() if not self.can(name)}
        if missing:
            raise missing_capability(missing)

    @property
    def input_responses(self) -> Mapping[str, Any]:
        """The user's answers, by the keys of the questions."""
        value = self.message.params.get("inputResponses")
        return value if isinstance(value, Mapping) else {}

    async def progress(self, progress: float, total: float | None = None, text: str | None = None) -> None:
        """Send a progress notification if the request has a progress token."""
        token = self.message.meta.get("progressToken")
        if token is None:
            return
        members = {"progressToken": token, "progress": progress, "total": total, "message": text}
        params = {name: value for name, value in members.items() if value is not None}
        await self.send(notification("notifications/progress", params))

    async def log(self, level: str, data: Any) -> None:
        """Send a log event to the client, if the request set a level that includes it."""
        least = self.message.meta.get(types.LOG_LEVEL_META_KEY)
        if least in _LEVELS and _LEVELS.index(level) >= _LEVELS.index(least):
            await self.send(notification("notifications/message", {"level": level, "data": data}))
