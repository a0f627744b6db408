"""The `gateway` command: one line for each of its commands, which are loaded when called."""

import click

from gateway.cli.failures import EXIT_CODES
from gateway.cli.lazy import Lazy, LazyGroup

SECTIONS = {
    "Call applications": (
        Lazy("call", "gateway.cli.call:call", "Run one operation: gateway call support-desk tickets list per_page=2"),
        Lazy("batch", "gateway.cli.batch:batch", "Run many operations as one job: gateway batch close.ndjson"),
        Lazy("find", "gateway.cli.find:find", "Find the operation for a task: gateway find close a ticket"),
        Lazy("search", "gateway.cli.search:search", "Search the synchronized copy of records."),
        Lazy("download", "gateway.cli.download:download", "Download a file; resumes an interrupted download."),
        Lazy("upload", "gateway.cli.upload:upload", "Send a file to an application."),
        Lazy("export", "gateway.cli.export:export", "Collect all pages of a list or search into a file."),
        Lazy("mcp", "gateway.cli.mcp:mcp", "Serve the tools to an MCP host over stdio."),
        Lazy("jobs", "gateway.cli.jobs:jobs", "List, watch, cancel and retry jobs."),
        Lazy("events", "gateway.cli.events:events", "List or follow events of jobs, connectors and records."),
        Lazy("webhooks", "gateway.cli.webhooks:webhooks", "Create and test webhooks; forward events to a local URL."),
        Lazy("hooks", "gateway.cli.hooks:hooks", "Manage hooks: URLs for applications' notices of changes."),
        Lazy("schedules", "gateway.cli.schedules:schedules", "Run operations at the times of a cron expression."),
        Lazy("approvals", "gateway.cli.approvals:approvals", "Approve or deny calls that wait."),
        Lazy("budget", "gateway.cli.budget:budget", "Limit what clients may use in a period."),
        Lazy("people", "gateway.cli.people:people", "Manage people, groups, and tokens of identity providers."),
        Lazy("sessions", "gateway.cli.sessions:sessions", "Act for a person: open, list and end sessions."),
        Lazy("issuers", "gateway.cli.issuers:issuers", "Trust providers whose tokens clients exchange."),
        Lazy("policy", "gateway.cli.policy:policy", "Store policies from files, and try them by cases."),
        Lazy("connect", "gateway.cli.connect:connect", "Create a connector, by credentials or OAuth consent."),
        Lazy("connectors", "gateway.cli.connectors:connectors", "List, check, synchronize and delete connectors."),
        Lazy("apps", "gateway.cli.apps:apps", "Register your own OAuth apps."),
        Lazy("types", "gateway.cli.types:types", "Show kinds, entities and operations, with examples."),
        Lazy("tools", "gateway.cli.tools:tools", "Print operations as tool definitions for agent frameworks."),
        Lazy("workspaces", "gateway.cli.api:workspaces", "List the workspaces of the organization."),
        Lazy("organization", "gateway.cli.organization:organization", "Delete the organization and all its data."),
        Lazy("audit", "gateway.cli.audit:audit", "List, export and verify the audit log."),
        Lazy("logs", "gateway.cli.logs:logs", "List or follow the HTTP requests to applications."),
        Lazy("grants", "gateway.cli.api:grants", "List and revoke the access of agents' hosts."),
        Lazy("api", "gateway.cli.api:api", "Send one request to the gateway: gateway api GET jobs"),
        Lazy("login", "gateway.cli.profiles:login", "Sign in to a gateway and store it as a profile."),
        Lazy("logout", "gateway.cli.profiles:logout", "Delete a profile and end its sign-in."),
        Lazy("profiles", "gateway.cli.profiles:profiles", "List the profiles and choose the current one."),
        Lazy("token", "gateway.cli.api:token", "Print a bearer token."),
        Lazy("completion", "gateway.cli.completion:completion", "Print the completion script of a shell."),
        Lazy("help", "gateway.cli.about:help_", "Show the help of a command: gateway help jobs watch"),
        Lazy("version", "gateway.cli.about:version", "Print the version."),
    ),
    "Run the gateway": (
        Lazy("up", "gateway.cli.operator:up", "Run the whole gateway, with its own PostgreSQL and Redis."),
        Lazy("demo", "gateway.cli.demo:demo", "Try the gateway: make typical calls to a sandbox."),
        Lazy("status", "gateway.cli.doctor:status", "Show queue, workers, connectors and copies."),
        Lazy("doctor", "gateway.cli.doctor:doctor", "Find configuration and runtime problems."),
        Lazy("serve", "gateway.cli.operator:serve", "Run one front end."),
        Lazy("worker", "gateway.cli.operator:worker", "Run one worker."),
        Lazy("sandbox", "gateway.cli.sandbox:sandbox", "Run a stand-in for all applications."),
        Lazy("migrate", "gateway.cli.operator:migrate", "Apply the database migrations of this version."),
        Lazy("admin", "gateway.cli.admin:admin", "Manage organizations, clients and people."),
        Lazy("backup", "gateway.cli.backup:backup", "Back up the embedded PostgreSQL while it runs."),
        Lazy("restore", "gateway.cli.backup:restore", "Restore a backup of the embedded PostgreSQL."),
        Lazy("end-writes", "gateway.cli.backup:end_writes", "End unfinished writes after a restore of PostgreSQL."),
        Lazy(
            "export-organization", "gateway.cli.moving:export_organization", "Export an organization to a sealed file."
        ),
        Lazy("import-organization", "gateway.cli.moving:import_organization", "Import an organization from its file."),
        Lazy("keys", "gateway.cli.keys:keys", "Create, add, promote and rotate encryption keys."),
        Lazy("specs", "gateway.cli.specs:specs", "Make, import, check, show and compare specs."),
    ),
}

EPILOG = f"""\b
Commands that call the gateway read GATEWAY_URL, GATEWAY_CLIENT_ID,
GATEWAY_CLIENT_SECRET, GATEWAY_WORKSPACE and GATEWAY_ORGANIZATION_ID. None of
these is needed after `gateway login`, or in the folder of a running
`gateway up`.

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
