"""The `gateway` command: one line for each of its commands, which are loaded when called."""

import click

from gateway.cli.failures import EXIT_CODES
from gateway.cli.lazy import Lazy, LazyGroup

SECTIONS = {
    "Call applications": (
        Lazy("call", "gateway.cli.call:call", "Run one operation: gateway call support-desk tickets list per_page=2"),
        Lazy("find", "gateway.cli.find:find", "Find the operation for a task: gateway find close a ticket"),
        Lazy("search", "gateway.cli.search:search", "Search the synchronized copy of records."),
        Lazy("download", "gateway.cli.download:download", "Save a file, going on where an earlier try stopped."),
        Lazy("mcp", "gateway.cli.mcp:mcp", "Offer it all to an agent's host over stdio."),
        Lazy("jobs", "gateway.cli.jobs:jobs", "List, watch, cancel and retry long work."),
        Lazy("connect", "gateway.cli.connect:connect", "Bind an account, by credentials or consent."),
        Lazy("connectors", "gateway.cli.connectors:connectors", "List, check and drop the accounts bound."),
        Lazy("apps", "gateway.cli.apps:apps", "Own OAuth apps, in whose name consent is asked."),
        Lazy("types", "gateway.cli.types:types", "What there is to call, with an example for each operation."),
        Lazy("tools", "gateway.cli.tools:tools", "Operations as tool definitions for agent frameworks."),
        Lazy("workspaces", "gateway.cli.api:workspaces", "List the workspaces of the organization."),
        Lazy("audit", "gateway.cli.api:audit", "Who did what, when, with which outcome."),
        Lazy("grants", "gateway.cli.api:grants", "What people let agents' hosts do, and its end."),
        Lazy("api", "gateway.cli.api:api", "One request to the gateway: gateway api GET jobs"),
        Lazy("token", "gateway.cli.api:token", "Print a bearer token."),
        Lazy("completion", "gateway.cli.completion:completion", "Print the completion script of a shell."),
    ),
    "Run the gateway": (
        Lazy("up", "gateway.cli.operator:up", "Run everything, with its own PostgreSQL and Redis."),
        Lazy("demo", "gateway.cli.demo:demo", "Show it all at work against the sandbox."),
        Lazy("status", "gateway.cli.doctor:status", "Whether the gateway and its parts are well."),
        Lazy("doctor", "gateway.cli.doctor:doctor", "Look for what keeps the gateway from working."),
        Lazy("serve", "gateway.cli.operator:serve", "Run one front end."),
        Lazy("worker", "gateway.cli.operator:worker", "Run one worker."),
        Lazy("sandbox", "gateway.cli.operator:sandbox", "Run a stand-in for all applications."),
        Lazy("migrate", "gateway.cli.operator:migrate", "Bring the database's schema up to this version."),
        Lazy("admin", "gateway.cli.operator:admin", "Manage organizations, clients and people."),
        Lazy("backup", "gateway.cli.backup:backup", "Write a dump of the embedded PostgreSQL while it runs."),
        Lazy("restore", "gateway.cli.backup:restore", "Put a dump in the place of what is there."),
        Lazy("keys", "gateway.cli.keys:keys", "The keys that seal credentials."),
        Lazy("specs", "gateway.cli.specs:specs", "Check the specs of connector kinds."),
    ),
}

EPILOG = f"""\b
Callers' commands read GATEWAY_URL, GATEWAY_CLIENT_ID, GATEWAY_CLIENT_SECRET, GATEWAY_WORKSPACE
and GATEWAY_ORGANIZATION_ID. On the machine of a `gateway up`, in its folder, none is needed.

{EXIT_CODES}"""


@click.group(
    cls=LazyGroup,
    sections=SECTIONS,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(package_name="agent-connector-gateway", prog_name="gateway")
def main() -> None:
    """One gateway between software agents and business applications."""
