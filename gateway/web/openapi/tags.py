"""The groups of operations with their descriptions."""

TAGS = {
    "Execute": "Run an operation of an application: read, search, write, download.",
    "Tokens": "Bearer tokens for clients.",
    "Workspaces": "Groups of connectors; a connector that names a new workspace creates it.",
    "Connectors": "Accounts of applications: a workspace, a kind and sealed credentials.",
    "OAuth": "Connectors from a user's consent, and the organization's own OAuth apps.",
    "Downloads": "Files with ranges (RFC 9110).",
    "Context store": "The synchronized copy of an application's records.",
    "Connect links": "Links with which a person connects an application.",
    "Jobs": "Operations that run on workers: follow them, get their results, cancel them, run them again.",
    "Schedules": "Operations that run as jobs at the times of a cron expression.",
    "Discovery": "Kinds, operations, tools and documents for agents.",
    "Events": "The feed of events: ends of jobs, states of connectors, changes of records.",
    "Webhooks": "Deliveries of events to receivers, as Standard Webhooks describes.",
    "Policies": "What clients may do beyond their scopes, in Cedar.",
    "Budgets": "What clients, people and workspaces may use in a period.",
    "Clients": "Programs and people that may act for the organization.",
    "People": "People of the organization, and groups from which they have rights.",
    "Audit": "Who did what, when and with which outcome.",
    "Agents": "The Model Context Protocol, and the authorization of agents' hosts.",
    "Operations": "Health, metrics and documents of the gateway.",
}
