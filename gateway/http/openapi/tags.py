"""What the groups of operations are about."""

TAGS = {
    "Execute": "Run an operation of an application: read, search, write, download.",
    "Tokens": "Bearer tokens for clients, and their end.",
    "Workspaces": "Groups of connectors, which come into being when a connector names them.",
    "Connectors": "Applications that are bound: a workspace, a kind and sealed credentials.",
    "OAuth": "Connectors from a person's consent, and the apps in whose name it is asked.",
    "Downloads": "Files as plain resources with ranges (RFC 9110).",
    "Context store": "The synchronized copy of an application's records.",
    "Connect links": "Links at which a person connects an application.",
    "Jobs": "Work that outlives the call: follow it, take its result, cancel it, run it again.",
    "Schedules": "Operations that run as jobs at the times of a cron expression.",
    "Discovery": "What there is to call: kinds, operations, tools and documents for agents.",
    "Clients": "Programs and people that may act for the organization.",
    "Audit": "Who did what, when and with which outcome.",
    "Agents": "The Model Context Protocol, and the authorization of agents' hosts.",
    "Operations": "The gateway about itself.",
}
