"""Operations as tools for a model: a definition in the format of its API, and a method that runs the operation."""

import base64
import codecs
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any, Protocol

from gateway.contract.answers import Answer
from gateway.kinds.find.formats import FORMATS, ToolDefinition

#: maximum bytes of a file in a tool's result; the param `range_header` selects other bytes
MAX_FILE_BYTES = 64 * 1024

Run = Callable[[Mapping[str, Any]], Awaitable[Any]]


class Executing(Protocol):
    """The methods of a client that its tools use."""

    async def execute(
        self, connector: str, entity: str, action: str, params: Mapping[str, Any] | None = None, /
    ) -> Answer: ...

    def chunks(self, connector: str, entity: str, params: Mapping[str, Any], /) -> AsyncGenerator[bytes, None]: ...


class Tool:
    """One operation as a tool for a model: `definition("openai")` describes it, `call` runs it."""

    def __init__(self, definition: ToolDefinition, run: Run) -> None:
        self._definition = definition
        self._run = run

    @property
    def name(self) -> str:
        return self._definition.name

    @property
    def operation(self) -> str:
        """`kind.entity.action`."""
        return self._definition.operation

    @property
    def title(self) -> str:
        return self._definition.title

    @property
    def description(self) -> str:
        return self._definition.description

    @property
    def schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments."""
        return dict(self._definition.schema)

    @property
    def effect(self) -> str:
        """`read` changes nothing; a host may want to ask its user before `idempotent` and `write`."""
        return self._definition.effect

    def definition(self, format: str) -> dict[str, Any]:  # noqa: A002 - the name in the API
        """The definition in the format `mcp`, `openai` or `anthropic`."""
        return FORMATS[format](self._definition)

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        """Run the operation and return its result; for a file `{content, encoding, bytes, complete}`."""
        return await self._run(arguments)

    async def __call__(self, **arguments: Any) -> Any:
        return await self.call(arguments)

    def __repr__(self) -> str:
        return f"<Tool {self.name}>"


def runner(gateway: Executing, operation: str, connector: str | None) -> Run:
    """The function that runs an operation on a connector, by default on the only one of its kind in the workspace."""
    kind, entity, action = operation.split(".")

    async def run(arguments: Mapping[str, Any]) -> Any:
        if action == "download":
            return await _file(gateway, connector or kind, entity, arguments)
        return (await gateway.execute(connector or kind, entity, action, arguments)).result

    return run


async def _file(gateway: Executing, connector: str, entity: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """The first `MAX_FILE_BYTES` of a file."""
    content = bytearray()
    async with aclosing(gateway.chunks(connector, entity, params)) as chunks:
        async for chunk in chunks:
            content += chunk
            if len(content) > MAX_FILE_BYTES:
                break
    complete = len(content) <= MAX_FILE_BYTES
    return {**_shown(bytes(content[:MAX_FILE_BYTES]), complete), "complete": complete}


def _shown(content: bytes, complete: bool) -> dict[str, Any]:
    """The content as text, without a last character that is incomplete; as base64 if it is not UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        text = decoder.decode(content, final=complete)
    except UnicodeDecodeError:
        return {"content": base64.b64encode(content).decode(), "encoding": "base64", "bytes": len(content)}
    return {"content": text, "encoding": "utf-8", "bytes": len(content) - len(decoder.getstate()[0])}
