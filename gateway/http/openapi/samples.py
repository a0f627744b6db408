"""How an operation is called: with curl, in Python and on the command line (the extension `x-codeSamples`)."""

import json
import re
from urllib.parse import urlencode

from gateway.http.openapi.paths import (
    CALLBACK,
    CONNECTOR,
    CONNECTOR_TYPES,
    CONNECTORS,
    CONSENT,
    DOWNLOAD,
    EXECUTE,
    JOB,
    OAUTH_APPS,
    TOKENS,
)
from gateway.http.openapi.requests import body_example, is_form, path_example, query_example
from gateway.http.route import Route
from gateway.oauth_server.metadata import AUTHORIZE

#: shell variables that stand for the ids of a path
_VARIABLES = {
    "connector_id": "CONNECTOR",
    "job_id": "JOB",
    "workspace_id": "WORKSPACE",
    "flow_id": "FLOW",
    "session_id": "SESSION",
}
#: the command that does it, where it is another than `gateway api`
_COMMANDS: dict[tuple[str, str], str] = {
    ("POST", EXECUTE): "gateway call support-desk tickets list per_page=2 --select id,subject",
    ("POST", TOKENS): "gateway token",
    ("GET", "/api/v1/workspaces"): "gateway workspaces",
    ("POST", CONNECTORS): "gateway connect support-desk --env subdomain=acme --credential email=agent@acme.com "
    "--credential api_token=@token",
    ("GET", CONNECTORS): "gateway connectors list",
    ("GET", CONNECTOR): "gateway connectors show $CONNECTOR",
    ("DELETE", CONNECTOR): "gateway connectors delete $CONNECTOR",
    ("POST", f"{CONNECTOR}/check"): "gateway connectors check $CONNECTOR",
    ("GET", f"{CONNECTOR}/inspect"): "gateway connectors show $CONNECTOR",
    ("POST", f"{CONNECTORS}/oauth/initiate"): "gateway connect team-chat",
    ("PUT", OAUTH_APPS): "gateway apps set team-chat --client-id acme-agents",
    ("GET", OAUTH_APPS): "gateway apps list",
    ("DELETE", f"{OAUTH_APPS}/connector_type/{{connector_type}}"): "gateway apps delete support-desk",
    ("GET", DOWNLOAD): "gateway download support-desk attachments attachment_id=2",
    ("POST", f"{CONNECTOR}/context-store/sync"): "gateway connectors sync $CONNECTOR",
    ("GET", "/api/v1/jobs"): "gateway jobs list",
    ("GET", JOB): "gateway jobs show $JOB",
    ("GET", f"{JOB}/events"): "gateway jobs watch $JOB",
    ("GET", f"{JOB}/result"): "gateway jobs result $JOB",
    ("POST", f"{JOB}/cancel"): "gateway jobs cancel $JOB",
    ("POST", f"{JOB}/retry"): "gateway jobs retry $JOB",
    ("GET", CONNECTOR_TYPES): "gateway types",
    ("GET", f"{CONNECTOR_TYPES}/{{kind}}"): "gateway types support-desk",
    ("GET", "/api/v1/operations"): "gateway find close a ticket",
    ("GET", "/api/v1/tools"): "gateway tools --format openai --kind support-desk --effect read",
    ("GET", "/api/v1/audit"): "gateway audit --limit 20",
    ("POST", "/mcp"): "gateway mcp",
    ("POST", "/mcp/{kind}"): "gateway mcp --tools support-desk.*",
    ("GET", "/readyz"): "gateway status",
}
#: what `gateway.client` has for it, within `async with Gateway() as gateway:`
_CLIENT: dict[tuple[str, str], str] = {
    ("POST", EXECUTE): 'answer = await gateway.execute("support-desk", "tickets", "list", {"per_page": 2})\n'
    "print(answer.result, answer.meta)",
    ("POST", CONNECTORS): 'credentials = {"subdomain": "acme", "email": "agent@acme.com", "api_token": "…"}\n'
    'print(await gateway.connectors.create("support-desk", credentials, name="Help desk"))',
    ("GET", CONNECTORS): "print(await gateway.connectors.list())",
    ("GET", CONNECTOR): "print(await gateway.connectors.get(connector_id))",
    ("PATCH", CONNECTOR): 'print(await gateway.connectors.update(connector_id, name="Help desk of Acme"))',
    ("DELETE", CONNECTOR): "job = await gateway.connectors.delete(connector_id)\nawait job.wait()",
    ("POST", f"{CONNECTOR}/check"): 'print(await gateway.connectors.check("support-desk"))',
    ("GET", f"{CONNECTOR}/inspect"): 'print(await gateway.connectors.inspect("support-desk"))',
    ("POST", f"{CONNECTORS}/oauth/initiate"): 'consent = await gateway.connectors.connect("team-chat", redirect_url)\n'
    "print(consent.url)  # for the user's browser\nprint(await consent.wait())",
    ("PUT", OAUTH_APPS): 'print(await gateway.apps.set("team-chat", "acme-agents", client_secret))',
    ("GET", OAUTH_APPS): "print(await gateway.apps.list())",
    ("DELETE", f"{OAUTH_APPS}/connector_type/{{connector_type}}"): 'await gateway.apps.delete("support-desk")',
    ("GET", DOWNLOAD): 'params = {"attachment_id": 2}\n'
    'file = await gateway.download("support-desk", "attachments", params, to="attachment.bin")\n'
    "print(file.size, file.sha256)",
    ("GET", f"{CONNECTOR}/context-store"): 'print(await gateway.connectors.copies("support-desk"))',
    ("POST", f"{CONNECTOR}/context-store/sync"): 'job = await gateway.connectors.sync("support-desk", ["tickets"])\n'
    "await job.wait()",
    ("GET", "/api/v1/jobs"): 'print(await gateway.jobs.list(status="running"))',
    ("GET", JOB): "job = await gateway.jobs.get(job_id)\nprint(job.status)",
    (
        "GET",
        f"{JOB}/events",
    ): "job = await gateway.jobs.get(job_id)\nasync for event in job.events():\n    print(event)",
    ("GET", f"{JOB}/result"): "job = await gateway.jobs.get(job_id)\nprint((await job.result()).result)",
    ("POST", f"{JOB}/cancel"): "job = await gateway.jobs.get(job_id)\nawait job.cancel()",
    ("POST", f"{JOB}/retry"): "job = await gateway.jobs.get(job_id)\nprint(await job.retry(confirm=True))",
    ("GET", CONNECTOR_TYPES): "print(await gateway.types())",
    ("GET", f"{CONNECTOR_TYPES}/{{kind}}"): 'print(await gateway.type("support-desk"))',
    ("GET", "/api/v1/operations"): 'print(await gateway.find_operations("close a ticket"))',
    ("GET", "/api/v1/tools"): 'print(await gateway.tools(kind="support-desk", effect="read"))',
}


def samples_of(route: Route) -> list[dict[str, str]]:
    """A sample for each way of calling it; none for what only browsers open."""
    if route.path.startswith(AUTHORIZE) or route.path in (CONSENT, CALLBACK):
        return []
    return [
        {"lang": "Shell", "label": "curl", "source": _curl(route)},
        {"lang": "Python", "label": "Python", "source": _python(route)},
        {"lang": "Shell", "label": "CLI", "source": _command(route)},
    ]


def _address(route: Route, opening: str, closing: str = "") -> str:
    """Its path with names that exist, and variables of the language for ids."""

    def place(variable: re.Match[str]) -> str:
        name = variable[1]
        known = _VARIABLES.get(name)
        return path_example(name) if known is None else f"{opening}{name if closing else known}{closing}"

    query = urlencode(query_example(route))
    return re.sub(r"{(\w+)}", place, route.path) + (f"?{query}" if query else "")


def _curl(route: Route) -> str:
    method = {"GET": "", "POST": "", "HEAD": " -I"}.get(route.method, f" -X {route.method}")
    body = body_example(route)
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


def _command(route: Route) -> str:
    known = _COMMANDS.get((route.method, route.path))
    if known is not None:
        return known
    body = body_example(route)
    path, _, query = _address(route, "$").partition("?")
    words = [f'gateway api {route.method} "{path}"' if "$" in path else f"gateway api {route.method} {path}"]
    words += [f"-q {member}" for member in query.split("&") if member]
    if body is not None and not is_form(route):
        words.append(f"-d {_quoted(json.dumps(body, ensure_ascii=False))}")
    return " ".join(words)


def _python(route: Route) -> str:
    known = _CLIENT.get((route.method, route.path))
    if known is not None:
        lines = "\n".join(f"    {line}" for line in known.splitlines())
        return f"from gateway.client import Gateway\n\nasync with Gateway() as gateway:\n{lines}"
    return _with_httpx(route)


def _with_httpx(route: Route) -> str:
    """For what the client has no method of its own."""
    body, path = body_example(route), _address(route, "{", "}")
    arguments = [f'f"{{url}}{path}"' if "{" in path else f'url + "{path}"']
    if not route.is_open:
        arguments.append('headers={"Authorization": f"Bearer {token}"}')
    if body is not None:
        arguments.append(f"{'data' if is_form(route) else 'json'}={body!r}")
    call = f"httpx.{route.method.lower()}({', '.join(arguments)})"
    said = "print(answer.headers)" if route.method == "HEAD" else "print(answer.text)"
    return f'import os\n\nimport httpx\n\nurl = os.environ["GATEWAY_URL"]\nanswer = {call}\n{said}'
