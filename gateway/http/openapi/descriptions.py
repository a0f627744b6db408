"""What each operation promises, as the document tells it: Markdown by the operation's id."""

DESCRIPTIONS = {
    "execute": (
        "Runs one operation of a connector: `entity` and `action`, and the `params` that they take. All params are "
        "checked before anything is sent; a 422 names every fault and holds a call that is right as `example`.\n\n"
        "The answer's `result` is the records of a list or search, the record of a get, create or update. `next` is "
        "the params of the call for the next page, null at the end. With `dry_run` nothing is sent, and `result` is "
        "the requests that would be.\n\n"
        "With `Prefer: respond-async` the call becomes a job at once, with `Prefer: wait=N` when it takes longer; bulk "
        "updates are jobs in any case. `Idempotency-Key` makes a write safe to send again. `action: download` streams "
        "the file, `action: context_store_search` searches the synchronized copy (`SearchParams`). Reading needs the "
        "scope `read`, anything else `write`."
    ),
    "issue_token": (
        "Answers with a bearer token for a client's id and secret; it lives for 15 minutes. An unknown client and a "
        "wrong secret are answered alike."
    ),
    "grant_token": (
        "The grants of RFC 6749: `client_credentials` for a client (id and secret in the form or by Basic), "
        "`authorization_code` and `refresh_token` for agents' hosts. Errors have the shape of that RFC (§5.2)."
    ),
    "revoke_token": "Ends a token (RFC 7009). One that is unknown has ended already: 200 as well.",
    "list_workspaces": "The organization's workspaces by name, with the number of their connectors.",
    "delete_workspace": (
        "Deletes a workspace with all its connectors, as a job: grants are revoked, records, results, stored files and "
        "secrets are gone when the job says that it is done."
    ),
    "create_connector": (
        "Binds an application to a workspace, which comes into being by being named. The kind's variables, such as "
        "`subdomain`, may stand in `environment` or in `credentials`. The application is asked first, unless "
        "`validate` is false; a refusal is 422 `invalid_credentials` and names the field. Credentials are sealed and "
        "never come back."
    ),
    "list_connectors": "All connectors that match; pages of them with `limit`.",
    "get_connector": "One connector, without its credentials.",
    "change_connector": (
        "Changes the name, disables (`status: disabled`) or enables it (`active`), or puts new credentials under the "
        "same id. The old credentials stay until the new ones have passed the check."
    ),
    "delete_connector": (
        "The connector is gone at once. A job revokes its grant where the application can, and drops its records, job "
        "results, stored files and secrets before it says that it is done."
    ),
    "check_connector": "Calls the kind's health check: `healthy`, or `unhealthy` with the reason.",
    "inspect_connector": (
        "What an agent needs to know before it calls: whether the connector is ready, the operations that it may use, "
        "and how fresh the copies of its records are."
    ),
    "initiate_oauth": (
        "Begins a person's consent. Send the browser to `consent_url`; it comes back to `redirect_url`, which must be "
        "one of the client's exactly, with `connector_id`, or `error` and `error_description`, in the query, and your "
        "`state` unchanged. With `connector_id` an existing connector is authorized again, in place."
    ),
    "begin_consent": (
        "For browsers: binds the consent to this browser by a cookie and leads on to the application's own page. What "
        "is unknown, used or expired is a plain page, 400."
    ),
    "finish_oauth": (
        "For browsers: the application sends them here with `code` and `state`. The connector is made, and the browser "
        "goes on to `redirect_url`. A `state` that is unknown, used or expired is a plain page, 400, and never "
        "redirects."
    ),
    "get_oauth_flow": "Where a consent stands, for callers that cannot see the browser.",
    "put_oauth_app": (
        "Sets the organization's own OAuth app for a kind: consents are asked in its name from now on. The secret is "
        "sealed and never comes back."
    ),
    "list_oauth_apps": "The organization's own OAuth apps, without their secrets.",
    "delete_oauth_app": "Takes the organization's own app away: the platform's app is used again.",
    "get_file": (
        "The file of the entity's download action as a plain resource; its params stand in the query. `Range`, "
        "`If-Range` and `If-None-Match` work as RFC 9110 has it, so `curl -C -`, `wget -c` and `aria2c -x4` resume and "
        "split it. A file that was cut short never looks whole: the connection is cut."
    ),
    "head_file": "What GET would say of the whole file; its bytes are not read.",
    "context_store_status": "The copies by entity: how many records, how fresh, and what went wrong last.",
    "synchronize": (
        "Brings the copies up to date now, as a job: all of them or those of `entities`; with `full` everything is "
        "read, which also finds what is gone."
    ),
    "create_connect_session": (
        "Makes a link at which a person connects one application, by consent or by a key; good once, for 30 minutes "
        "at most. `redirect_url` must be one of the client's."
    ),
    "get_connect_session": "Where a link stands: `pending`, `completed` with the `connector_id`, or `expired`.",
    "list_jobs": "The organization's jobs, the newest first. `status` takes several, separated by commas.",
    "get_job": (
        "One job. With `Prefer: wait=N` or `?wait=N` the answer comes as soon as the job changes, after N seconds at "
        "the latest; with `If-None-Match` as soon as it is another than the one you know."
    ),
    "job_events": (
        "Server-Sent Events: `progress`, `status`, in the end `done`. Come back with `Last-Event-ID` and the stream "
        "goes on without gap or repeat; 204 when all was told."
    ),
    "job_result": (
        "What the inline call would have answered, its error status included; 202 with the job while it is not done, "
        "410 once it has expired. `Accept: application/x-ndjson` gives one record a line. The result of a download is "
        "the file, with ranges. Of a job that ended in the middle the error holds what was done as `result`."
    ),
    "head_job_result": "What GET would say of the result: of a stored file its size and its tag.",
    "cancel_job": (
        "Queued work ends `canceled`, a read is stopped, a write that was sent runs to its true end. 409 "
        "`job_not_cancelable` when it has ended."
    ),
    "retry_job": (
        "Does the work of a failed or canceled job again, as a new job. An `unknown` one, whose write may have "
        "happened, only with `confirm: true`."
    ),
    "list_connector_types": "Every kind of application in brief: how it authenticates, its entities and their actions.",
    "get_connector_type": (
        "One kind whole: for every action the JSON Schema of its params, its effect (`read`, `idempotent`, `write`), "
        "how its pages are turned, and an example."
    ),
    "search_operations": (
        "The operations that fit a task in plain words, the best first, with the connectors that could run them; "
        "without `query` all operations in a fixed order."
    ),
    "list_tools": (
        "Operations as tool definitions for a model: `format` says whose. `operations` in the answer tells which "
        "operation a tool's name stands for."
    ),
    "read_skill_docs": "A kind's document for agents, whole or one section: params with their meanings, and examples.",
    "list_audit": "Who did what, when and with which outcome, the newest first. Params and bodies are never kept.",
    "show_usage": "Calls, errors and milliseconds over time, from the audit log.",
    "list_grants": "What people let agents' hosts do: who, which host, which scopes and workspaces; the newest first.",
    "revoke_grant": (
        "Ends what somebody let a host do, with its access and refresh tokens, in every process at once. The host may "
        "ask a person again."
    ),
    "list_clients": "Programs and people that may act for the organization; secrets never come back.",
    "change_client": (
        "Puts `redirect_urls` in the place of those that the client had. A client that other organizations rely on too "
        "answers 404."
    ),
    "list_health_checks": (
        "Whether PostgreSQL, Redis and workers answer, and how the organization's own jobs and copies stand; each "
        "check is `passed`, `warning` or `failed`. Settings and other organizations are in `gateway doctor` alone."
    ),
    "mcp": (
        "The Model Context Protocol over Streamable HTTP, without sessions: six tools that reach every operation, or "
        "with `?tools=` a tool for each operation that fits one of the patterns, which are separated by commas."
    ),
    "mcp_of_kind": "The Model Context Protocol with one tool for each operation of a kind.",
    "resource_metadata": "Who gives tokens for `/mcp` (RFC 9728 §2).",
    "six_tools_metadata": "The same, at the place where RFC 9728 §3.1 looks for it.",
    "kind_metadata": "Who gives tokens for `/mcp/{kind}` (RFC 9728 §2).",
    "server_metadata": "The authorization server for agents' hosts (RFC 8414 §2).",
    "authorize": (
        "For browsers: the page on which a person signs in to give an agent's host access, by the authorization code "
        "grant with PKCE. Nothing is redirected before the person has acted."
    ),
    "sign_in": "For browsers: the form of the sign-in page, with a client's id and secret.",
    "leave_to_sign_in": "For browsers: signs in by the operator's OpenID Connect provider instead.",
    "choose_organization": "For browsers: which of the client's organizations the host is to act for.",
    "consent": "For browsers: gives the host a code for what was allowed, or tells it that it was denied.",
    "register": (
        "Registers an agent's host that has no metadata document (RFC 7591), where `GATEWAY_MCP_REGISTRATION` allows "
        "it; 404 otherwise."
    ),
    "root": "Leads a browser to the pages for people, and tells a program where the API and its documents are.",
    "healthz": "Whether the process runs; asks nothing else.",
    "readyz": (
        "Whether to send traffic here: PostgreSQL and Redis can be used and a worker was seen lately. 503 with "
        "`Retry-After` otherwise, and while the process drains."
    ),
    "metrics": "What this process counts, and the statistics that all processes share, as Prometheus reads them.",
    "openapi": "This document.",
    "docs": "This document as a page: search, examples, and a form that sends requests with your token.",
}
