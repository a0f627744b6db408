"""The audit log, usage and clients."""

from gateway.access.identity.model import Scope
from gateway.contract.gateway_state import AuditPage, ChangedClientView, ClientList, RequestPage, UsageView
from gateway.web.api import audit, clients, requests
from gateway.web.route import Route

READ, ADMIN = Scope.READ, Scope.ADMIN

ROUTES: tuple[Route, ...] = (
    Route(
        "GET",
        "/api/v1/audit",
        audit.list_audit,
        "Read the audit log",
        "Audit",
        query=audit.AuditQuery,
        response=AuditPage,
        scope=ADMIN,
        command="gateway audit --limit 20",
    ),
    Route(
        "GET",
        "/api/v1/requests",
        requests.list_requests,
        "List the HTTP requests to applications",
        "Audit",
        query=requests.RequestQuery,
        response=RequestPage,
        scope=READ,
        command="gateway logs --limit 20",
    ),
    Route(
        "GET",
        "/api/v1/clients",
        clients.list_clients,
        "List the organization's clients, programs and people",
        "Clients",
        response=ClientList,
        scope=ADMIN,
    ),
    Route(
        "PATCH",
        "/api/v1/clients/{client_id}",
        clients.change_client,
        "Change a client's redirect URLs",
        "Clients",
        body=clients.ChangeClient,
        response=ChangedClientView,
        scope=ADMIN,
        audit="client.update",
    ),
    Route(
        "GET",
        "/api/v1/usage",
        audit.show_usage,
        "Get calls, errors and durations over time",
        "Audit",
        query=audit.UsageQuery,
        response=UsageView,
        scope=READ,
    ),
)
