"""Samples of calls with curl, in Python, TypeScript and on the command line (`x-codeSamples`)."""

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from gateway.web.openapi.requests import (
    body_example,
    is_form,
    is_list,
    path_example,
    query_example,
    query_parameters,
)
from gateway.web.openapi.schemas import Schema
from gateway.web.route import Route

#: shell variables for the ids of a path
_VARIABLES = {
    "connector_id": "CONNECTOR",
    "job_id": "JOB",
    "workspace_id": "WORKSPACE",
    "flow_id": "FLOW",
    "session_id": "SESSION",
    "schedule_id": "SCHEDULE",
}
#: the option with which `openapi-fetch` encodes lists and objects in a query as the document declares them
_SERIALIZER = 'querySerializer: { array: { style: "form", explode: false }, object: { style: "form", explode: true } }'
#: the file that a sample sends
_FILE = "report.pdf"
#: media types of responses that are text
_TEXTS = ("text/plain", "text/html", "text/event-stream", "application/x-ndjson")


def samples_of(route: Route, schemas: dict[str, Schema]) -> list[dict[str, str]]:
    """A sample in each language; none for steps that only browsers open."""
    if route.is_browser_step:
        return []
    body = body_example(route, schemas)
    return [
        {"lang": "Shell", "label": "curl", "source": _curl(route, body)},
        {"lang": "Python", "label": "Python", "source": _python(route, body)},
        {"lang": "TypeScript", "label": "TypeScript", "source": _typescript(route, body)},
        {"lang": "Shell", "label": "CLI", "source": _command(route, body)},
    ]


def _address(route: Route, opening: str, closing: str = "") -> str:
    """The route's path and query, with variables of the language for ids and examples for other names."""

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
    if route.file_media is not None:
        lines += [f"--data-binary @{_FILE}", f'-H "Content-Type: {route.file_media}"']
        lines += ['-H "Upload-Offset: 0"', '-H "Upload-Complete: ?1"'] if "Upload-Offset" in route.reads else []
    elif body is None:
        lines += ["-X POST"] if route.method == "POST" else []
    elif is_form(route):
        lines += [f"--data-urlencode {_quoted(f'{name}={value}')}" for name, value in body.items()]
    else:
        lines.append(f"-d {_quoted(json.dumps(body, ensure_ascii=False))}")
    return " \\\n  ".join(lines)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _typescript(route: Route, body: Mapping[str, Any] | None) -> str:
    media = next(iter(route.media.get(200, ())), None)
    is_json = route.response is not None or media in (None, "application/json")
    parse_as = None if is_json else "text" if media in _TEXTS else "blob"
    return typescript_call(
        route.method,
        route.path,
        _typed_query(route),
        body,
        parse_as,
        is_open=route.is_open,
        is_form=is_form(route),
        takes_file=route.file_media is not None,
    )


def _typed_query(route: Route) -> dict[str, Any]:
    """The query of the sample: lists as arrays, and the params of the operation as the object `params`."""
    kinds = {each["name"]: each["schema"] for each in query_parameters(route)}
    example = query_example(route)
    named = {
        name: str(value).split(",") if is_list(kinds[name]) else value
        for name, value in example.items()
        if name in kinds
    }
    others = {name: value for name, value in example.items() if name not in kinds}
    return {**named, "params": others} if others else named


def typescript_call(
    method: str,
    path: str,
    query: Mapping[str, Any] | None = None,
    body: Mapping[str, Any] | None = None,
    parse_as: str | None = None,
    *,
    is_open: bool = False,
    is_form: bool = False,
    takes_file: bool = False,
) -> str:
    """A call with `openapi-fetch`, with the types that `openapi-typescript` generates from the document."""
    names = re.findall(r"{(\w+)}", path)
    variables = {name: f"process.env.{_VARIABLES[name]}!" for name in names if name in _VARIABLES}
    place = [f"{name}: {variables.get(name) or json.dumps(path_example(name))}" for name in names]
    params = [f"path: {{ {', '.join(place)} }}"] if place else []
    params += [f"query: {json.dumps(dict(query))}"] if query else []
    options = [f"params: {{ {', '.join(params)} }}"] if params else []
    if any(isinstance(each, list | dict) for each in (query or {}).values()):
        options.append(_SERIALIZER)
    options += [f"body: {json.dumps(body, ensure_ascii=False)}"] if body is not None else []
    options += ["bodySerializer: (form) => new URLSearchParams(form as Record<string, string>)"] if is_form else []
    options += [f'body: (await openAsBlob("{_FILE}")) as never', "bodySerializer: (file) => file"] if takes_file else []
    options += [f'parseAs: "{parse_as}"'] if parse_as else []
    headers = "" if is_open else ", headers: { Authorization: `Bearer ${process.env.TOKEN}` }"
    arguments = f", {{\n  {f',{chr(10)}  '.join(options)},\n}}" if options else ""
    opening = 'import { openAsBlob } from "node:fs";\n' if takes_file else ""
    return (
        f"{opening}"
        'import createClient from "openapi-fetch";\nimport type { paths } from "./gateway.d.ts";\n\n'
        f"const gateway = createClient<paths>({{ baseUrl: process.env.GATEWAY_URL{headers} }});\n"
        f'const {{ data, error }} = await gateway.{method}("{path}"{arguments});\nconsole.log(error ?? data);'
    )


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
    """A sample with httpx, for routes without a method of `gateway.client`."""
    path = _address(route, "{", "}")
    arguments = [f'f"{{url}}{path}"' if "{" in path else f'url + "{path}"']
    if not route.is_open:
        arguments.append('headers={"Authorization": f"Bearer {token}"}')
    if body is not None:
        arguments.append(f"{'data' if is_form(route) else 'json'}={body!r}")
    call = f"httpx.{route.method.lower()}({', '.join(arguments)})"
    shown = "print(answer.headers)" if route.method == "HEAD" else "print(answer.text)"
    return f'import os\n\nimport httpx\n\nurl = os.environ["GATEWAY_URL"]\nanswer = {call}\n{shown}'
