"""Every URL on one screen: method, path, handler, and what the OpenAPI document says of it."""

from dataclasses import dataclass, field

from aiohttp.typedefs import Handler
from pydantic import BaseModel

from gateway.http.handlers import (
    audit,
    connectors,
    context_store,
    discovery,
    downloads,
    execute,
    jobs,
    oauth,
    operations,
    tokens,
)

_CONNECTORS = "/api/v1/integrations/connectors"
_CONNECTOR = _CONNECTORS + "/{connector_id}"
_FILE = {200: "The file", 206: "The part asked for", 304: "It has not changed", 416: "It has none of these bytes"}


@dataclass(frozen=True, slots=True)
class Route:
    """One operation of the HTTP contract."""

    method: str
    path: str
    handler: Handler
    summary: str
    tag: str
    body: type[BaseModel] | None = None
    query: type[BaseModel] | None = None
    #: status → what it means, beside the errors that every route may answer
    answers: dict[int, str] = field(default_factory=lambda: {200: "OK"})
    needs_token: bool = True


ROUTES: tuple[Route, ...] = (
    # The first, because routes are tried in their order and nearly all requests are for this one.
    Route(
        "POST",
        _CONNECTOR + "/execute",
        execute.execute,
        "Run one operation",
        "Execute",
        body=execute.ExecuteBody,
        answers={200: "The answer", 202: "The job that will have it", 206: "A range of a file"},
    ),
    Route(
        "POST",
        "/api/v1/account/applications/token",
        tokens.issue_token,
        "Get a bearer token for a client's id and secret",
        "Tokens",
        body=tokens.TokenBody,
        needs_token=False,
    ),
    Route(
        "POST",
        "/oauth/token",
        tokens.grant_token,
        "Get a bearer token by the client-credentials grant (RFC 6749)",
        "Tokens",
        needs_token=False,
    ),
    Route(
        "GET",
        "/api/v1/workspaces",
        connectors.list_workspaces,
        "List workspaces",
        "Workspaces",
        query=connectors.WorkspaceQuery,
    ),
    Route(
        "DELETE",
        "/api/v1/workspaces/{workspace_id}",
        connectors.delete_workspace,
        "Delete a workspace with everything in it",
        "Workspaces",
        answers={202: "The job that deletes it"},
    ),
    Route(
        "POST",
        _CONNECTORS,
        connectors.create_connector,
        "Create a connector from credentials",
        "Connectors",
        body=connectors.CreateConnector,
        answers={201: "The connector"},
    ),
    Route(
        "GET",
        _CONNECTORS,
        connectors.list_connectors,
        "List connectors",
        "Connectors",
        query=connectors.ConnectorQuery,
    ),
    Route("GET", _CONNECTOR, connectors.get_connector, "Get a connector", "Connectors"),
    Route(
        "PATCH",
        _CONNECTOR,
        connectors.change_connector,
        "Change a connector's name, status or credentials",
        "Connectors",
        body=connectors.ChangeConnector,
    ),
    Route(
        "DELETE",
        _CONNECTOR,
        connectors.delete_connector,
        "Delete a connector",
        "Connectors",
        answers={202: "The job that deletes it"},
    ),
    Route("POST", _CONNECTOR + "/check", connectors.check_connector, "Ask the application now", "Connectors"),
    Route("GET", _CONNECTOR + "/inspect", connectors.inspect_connector, "What an agent can do with it", "Connectors"),
    Route(
        "POST",
        _CONNECTORS + "/oauth/initiate",
        oauth.initiate_oauth,
        "Begin a user's consent",
        "OAuth",
        body=oauth.InitiateOAuth,
        answers={200: "The address to send the user's browser to"},
    ),
    Route(
        "GET",
        _CONNECTORS + "/oauth/callback",
        oauth.finish_oauth,
        "Where the application sends the browser back to",
        "OAuth",
        answers={303: "To redirect_url, with connector_id, or error and error_description, in its query"},
        needs_token=False,
    ),
    Route(
        "GET",
        _CONNECTORS + "/oauth/flows/{flow_id}",
        oauth.get_oauth_flow,
        "Where a consent stands",
        "OAuth",
    ),
    Route(
        "PUT",
        "/api/v1/oauth/credentials",
        oauth.put_oauth_app,
        "Set the organization's own OAuth app for a kind",
        "OAuth",
        body=oauth.PutOAuthApp,
    ),
    Route(
        "GET",
        "/api/v1/oauth/credentials",
        oauth.list_oauth_apps,
        "List the organization's own OAuth apps",
        "OAuth",
    ),
    Route(
        "DELETE",
        "/api/v1/oauth/credentials/connector_type/{connector_type}",
        oauth.delete_oauth_app,
        "Use the platform's OAuth app again",
        "OAuth",
        answers={204: "The platform's app is used from the next consent on"},
    ),
    Route(
        "GET",
        _CONNECTOR + "/download/{entity}",
        downloads.get_file,
        "Get a file, or ranges of it",
        "Downloads",
        query=downloads.FileQuery,
        answers=_FILE,
    ),
    Route(
        "HEAD",
        _CONNECTOR + "/download/{entity}",
        downloads.head_file,
        "Ask what GET would say of the file",
        "Downloads",
        query=downloads.FileQuery,
        answers=_FILE,
    ),
    Route(
        "GET",
        _CONNECTOR + "/context-store",
        context_store.context_store_status,
        "How fresh the copies are that are searched",
        "Context store",
        answers={200: "Per entity: status, records, last_synced_at, next_sync_at and error"},
    ),
    Route(
        "POST",
        _CONNECTOR + "/context-store/sync",
        context_store.synchronize,
        "Bring the copies up to date now",
        "Context store",
        body=context_store.SynchronizeBody,
        answers={202: "The job that does it"},
    ),
    Route("GET", "/api/v1/jobs", jobs.list_jobs, "List jobs, the newest first", "Jobs", query=jobs.JobQuery),
    Route(
        "GET",
        "/api/v1/jobs/{job_id}",
        jobs.get_job,
        "Get a job, or wait for it to change",
        "Jobs",
        query=jobs.WaitQuery,
        answers={200: "The job", 304: "It has not changed"},
    ),
    Route(
        "GET",
        "/api/v1/jobs/{job_id}/events",
        jobs.job_events,
        "Follow a job by Server-Sent Events",
        "Jobs",
        answers={200: "A stream of progress, status and done events"},
    ),
    Route(
        "GET",
        "/api/v1/jobs/{job_id}/result",
        jobs.job_result,
        "Get a job's result",
        "Jobs",
        query=jobs.WaitQuery,
        answers={
            200: "What the inline call would have answered",
            202: "Not done yet: the job",
            206: "A range of the file that a download stored",
            304: "The stored file has not changed",
            416: "The stored file has none of the bytes asked for",
        },
    ),
    Route(
        "HEAD",
        "/api/v1/jobs/{job_id}/result",
        jobs.head_job_result,
        "Ask what GET would say of a job's result",
        "Jobs",
        query=jobs.WaitQuery,
    ),
    Route(
        "POST",
        "/api/v1/jobs/{job_id}/cancel",
        jobs.cancel_job,
        "Cancel a job",
        "Jobs",
        answers={202: "The job"},
    ),
    Route(
        "POST",
        "/api/v1/jobs/{job_id}/retry",
        jobs.retry_job,
        "Run an ended job's work again, as a new job",
        "Jobs",
        body=jobs.RetryBody,
        answers={202: "The new job"},
    ),
    Route(
        "GET",
        "/api/v1/integrations/connector-types",
        discovery.list_connector_types,
        "List the kinds of connectors",
        "Discovery",
    ),
    Route(
        "GET",
        "/api/v1/integrations/connector-types/{kind}",
        discovery.get_connector_type,
        "Get a kind with its operations",
        "Discovery",
    ),
    Route(
        "GET",
        "/api/v1/skills/docs",
        discovery.read_skill_docs,
        "Read a kind's document for agents",
        "Discovery",
        query=discovery.DocsQuery,
    ),
    Route("GET", "/api/v1/audit", audit.list_audit, "Read the audit log", "Audit", query=audit.AuditQuery),
    Route("GET", "/healthz", operations.healthz, "Whether the process runs", "Operations", needs_token=False),
    Route(
        "GET",
        "/readyz",
        operations.readyz,
        "Whether to send traffic here",
        "Operations",
        answers={200: "Ready", 503: "Not ready"},
        needs_token=False,
    ),
    Route("GET", "/metrics", operations.metrics, "Counts and figures for Prometheus", "Operations", needs_token=False),
    Route("GET", "/openapi.json", operations.openapi, "This document", "Operations", needs_token=False),
    Route("GET", "/docs", operations.docs, "This document as a page", "Operations", needs_token=False),
)
