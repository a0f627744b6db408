"""How an operation is called: with curl, in Python and on the command line (the extension `x-codeSamples`)."""

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from gateway.http.openapi.requests import body_example, is_form, path_example, query_example
from gateway.http.openapi.schemas import Schema
from gateway.http.route import Route

#: shell variables that stand for the ids of a path
_VARIABLES = {
    "connector_id": "CONNECTOR",
    "job_id": "JOB",
    "workspace_id": "WORKSPACE",
    "flow_id": "FLOW",
    "session_id": "SESSION",
    "schedule_id": "SCHEDULE",
}


def samples_of(route: Route, schemas: dict[str, Schema]) -> list[dict[str, str]]:
    """A sample for each way of calling it; none for what only browsers open."""
    if route.is_browser_step:
        return []
    body = body_example(route, schemas)
    return [
        {"lang": "Shell", "label": "curl", "source": _curl(route, body)},
        {"lang": "Python", "label": "Python", "source": _python(route, body)},
        {"lang": "Shell", "label": "CLI", "source": _command(route, body)},
    ]


def _address(route: Route, opening: str, closing: str = "") -> str:
    """Its path with names that exist, and variables of the language for ids."""

    def place(variable: re.Match[str]) -> str:
        name = variable[1]
        known = _VARIABLES.get(name)
        return path_example(name) if known is None else f"{opening}{name if closing else known}{closing}"

    query = urlencode(query_example(route))
    return re.sub(r"{(\w+)}", place, route.path) + (f"?{query}" if query else "")


def _curl(route: Route, body: Mapping[str, Any] | None) -> str:
    method = {"GET": "", "POST": "", "HEAD": " -I"}.get(route.method, f" -X {route.method}")
    lines = [f'curl -sS{method} "$GATEWAY_URL{_address(route, "$")}"']
    if not route.is_open:
        lines.append('-H "Authorization: Bearer $TOKEN"')
    if route.path.startswith("/mcp"):
        lines.append('-H "MCP-Protocol-Version: 2025-11-25"')
    if body is None:
        lines += ["-X POST"] if route.method == "POST" else []
    elif is_form(route):
        lines += [f"--data-urlencode {_quoted(f'{name}={value}')}" for name, value in body.items()]
    else:
        lines.append(f"-d {_quoted(json.dumps(body, ensure_ascii=False))}")
    return " \\\n  ".join(lines)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _command(route: Route, body: Mapping[str, Any] | None) -> str:
    if route.command is not None:
        return route.command
    path, _, query = _address(route, "$").partition("?")
    words = [f'gateway api {route.method} "{path}"' if "$" in path else f"gateway api {route.method} {path}"]
    words += [f"-q {member}" for member in query.split("&") if member]
    if body is not None and not is_form(route):
        words.append(f"-d {_quoted(json.dumps(body, ensure_ascii=False))}")
    return " ".join(words)


def _python(route: Route, body: Mapping[str, Any] | None) -> str:
    if route.python is not None:
        lines = "\n".join(f"    {line}" for line in route.python.splitlines())
        return f"from gateway.client import Gateway\n\nasync with Gateway() as gateway:\n{lines}"
    return _with_httpx(route, body)


def _with_httpx(route: Route, body: Mapping[str, Any] | None) -> str:
    """For what the client has no method of its own."""
    path = _address(route, "{", "}")
    arguments = [f'f"{{url}}{path}"' if "{" in path else f'url + "{path}"']
    if not route.is_open:
        arguments.append('headers={"Authorization": f"Bearer {token}"}')
    if body is not None:
        arguments.append(f"{'data' if is_form(route) else 'json'}={body!r}")
    call = f"httpx.{route.method.lower()}({', '.join(arguments)})"
    said = "print(answer.headers)" if route.method == "HEAD" else "print(answer.text)"
    return f'import os\n\nimport httpx\n\nurl = os.environ["GATEWAY_URL"]\nanswer = {call}\n{said}'
