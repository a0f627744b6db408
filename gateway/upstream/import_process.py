"""An import of an OpenAPI document in a process of its own, which its work cannot hold up or exhaust the gateway's.

The process reads a request as JSON from standard input and writes the result as JSON to standard output.
"""

import asyncio
import contextlib
import re
import resource
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from gateway.errors import InvalidParams
from gateway.foundation.aio.turns import Turns
from gateway.kinds.importing.importing import imported_from
from gateway.kinds.importing.mapping import Options
from gateway.kinds.importing.model import ImportFailed
from gateway.kinds.importing.report import report_lines
from gateway.kinds.importing.sources import is_url
from gateway.kinds.importing.writing import texts_of
from gateway.kinds.lint.kind import lint
from gateway.upstream.documents import fetching

#: seconds of processor time and bytes of memory of the process
_CPU_SECONDS, _MEMORY = 60, 2 << 30
#: seconds after which the process is killed
_TIMEOUT = 120.0
#: maximum errors of a spec that are reported
_MAX_ERRORS = 50
_ENTITY = re.compile("[a-z][a-z0-9_]*")
#: one import at a time for each process of the gateway; organizations take turns
_TURN = Turns()


class ImportRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A document to map, or a mapped kind to check after corrections."""

    #: the URL of the document; with `text`, the name of the file
    source: str
    text: str | None = None
    kind: str | None = None
    server: str | None = None
    variables: dict[str, str] = {}
    #: a mapped kind, which is only checked
    document: dict[str, Any] | None = None


class ImportResult(msgspec.Struct, frozen=True, kw_only=True):
    """The kind as the documents of its files, with the report of the import; or why there is none."""

    document: dict[str, Any] | None = None
    report: str = ""
    errors: list[str] = []


async def imported(request: ImportRequest) -> ImportResult:
    """Map a document or check a kind in a new process; raises InvalidParams with the reasons if that fails."""
    async with _TURN:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "gateway.upstream.import_process",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            async with asyncio.timeout(_TIMEOUT):
                output, _ = await process.communicate(msgspec.json.encode(request))
        except TimeoutError:
            raise InvalidParams(f"the import has not ended within {_TIMEOUT:.0f} seconds") from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
    try:
        result = msgspec.json.decode(output, type=ImportResult)
    except msgspec.MsgspecError:
        raise InvalidParams(
            f"the document needs more than {_CPU_SECONDS} seconds of processor time or {_MEMORY >> 30} GiB of memory; "
            "import it with `gateway specs import`"
        ) from None
    if result.errors:
        raise InvalidParams("; ".join(result.errors))
    return result


async def _mapped(request: ImportRequest) -> ImportResult:
    options = Options(kind=request.kind, server=request.server, variables=request.variables)
    with tempfile.TemporaryDirectory() as folder:
        if request.text is None and not is_url(request.source):
            raise ImportFailed("write the https address of an OpenAPI document, or paste the document")
        source = request.source if request.text is None else _written(request.text, Path(folder) / "document")
        async with fetching() as fetch:
            made = await imported_from(source, options, fetch=fetch)
    document = {"connector": made.connector, "entities": made.entities}
    return ImportResult(document=document, report="\n".join(report_lines(made)), errors=_errors(document))


def _written(text: str, path: Path) -> str:
    path.write_text(text, "utf-8")
    return str(path)


def _errors(document: Mapping[str, Any]) -> list[str]:
    """What the linter says of the kind. A name becomes that of a file, so one that is not an entity's is an error."""
    if unsafe := [name for name in document["entities"] if name == "connector" or not _ENTITY.fullmatch(name)]:
        return [f"{unsafe[0]!r} is not the name of an entity: it has small letters, digits and _"]
    with tempfile.TemporaryDirectory() as folder:
        for name, text in texts_of(document["connector"], document["entities"], "the console"):
            (Path(folder) / name).write_text(text, "utf-8")
        return [f"{error.path.name}:{error.line}: {error.message}" for error in lint(Path(folder))[:_MAX_ERRORS]]


def main() -> None:
    """Answer the request on standard input."""
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS, _CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=ImportRequest)
    try:
        if request.document is None:
            result = asyncio.run(_mapped(request))
        else:
            result = ImportResult(document=request.document, errors=_errors(request.document))
    except ImportFailed as failed:
        result = ImportResult(errors=[str(failed)])
    sys.stdout.buffer.write(msgspec.json.encode(result))


if __name__ == "__main__":
    main()
