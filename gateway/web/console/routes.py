"""The routes of the console's pages and forms."""

from gateway.access.identity.model import Scope
from gateway.web.api import jobs as api_jobs
from gateway.web.console import (
    approval_notice,
    approvals,
    batches,
    budgets,
    clients,
    connectors,
    grants,
    groups,
    issuers,
    jobs,
    kinds,
    me,
    overview,
    people,
    playground,
    policies,
    records,
    sandbox,
    schedule_form,
    schedules,
    scim,
    sessions,
    settings,
    sign_in,
    webhooks,
)
from gateway.web.console.page import error_page
from gateway.web.console.session import signed_in
from gateway.web.route import Route, RouteHandler

READ, WRITE, ADMIN = Scope.READ, Scope.WRITE, Scope.ADMIN
_TAG = "Console"
_APPROVAL = "/console/approvals/{approval_id}"
_CLIENT = "/console/settings/clients/{client_id}"
_CONNECTOR = "/console/connectors/{connector_id}"
_JOB = "/console/jobs/{job_id}"
_KIND = "/console/kinds/{kind}/{version}"
_PERSON = people.PAGE + "/{person_id}"
_POLICY = policies.PAGE + "/{name}"
_SCHEDULE = "/console/schedules/{schedule_id}"
_WEBHOOK = "/console/webhooks/{webhook_id}"


def _page(path: str, handler: RouteHandler, summary: str, scope: Scope = READ) -> Route:
    return Route(
        "GET", path, handler, summary, _TAG, scope=scope, is_page=True, error_page=error_page, authenticate=signed_in
    )


def _form(path: str, handler: RouteHandler, summary: str, audit: str | None, scope: Scope = WRITE) -> Route:
    return Route(
        "POST",
        path,
        handler,
        summary,
        _TAG,
        scope=scope,
        audit=audit,
        is_page=True,
        error_page=error_page,
        authenticate=signed_in,
    )


CONSOLE_ROUTES: tuple[Route, ...] = (
    Route("GET", "/console/sign-in", sign_in.show_sign_in, "The sign-in page", _TAG, is_open=True, is_page=True),
    Route(
        "POST",
        "/console/sign-in",
        sign_in.sign_in,
        "Sign in",
        _TAG,
        is_open=True,
        is_page=True,
        audit="console.sign_in",
    ),
    Route(
        "POST",
        "/console/sign-in/provider",
        sign_in.leave_to_sign_in,
        "Sign in at the operator's OpenID Connect provider",
        _TAG,
        is_open=True,
        is_page=True,
    ),
    _form("/console/sign-out", sign_in.sign_out, "Sign out", "console.sign_out", READ),
    _page("/console", overview.overview, "The overview"),
    _page("/console/health", overview.health, "The health of the gateway", ADMIN),
    _page(me.PAGE, me.show_page, "The page of a person"),
    _form(me.PAGE + "/connect", me.connect, "Connect an own application", "connect_session.create"),
    _form(me.PAGE + "/connectors/{connector_id}/disconnect", me.disconnect, "Disconnect", "connector.delete"),
    _form(me.PAGE + "/sessions/{person_session_id}/end", me.end_session, "Stop a client", "session.end", READ),
    _form(me.PAGE + "/grants/{grant_id}/revoke", me.revoke_grant, "Stop a host", "agent.revoke", READ),
    _page("/console/connectors", connectors.list_connectors, "All connectors"),
    _form("/console/connectors/connect", connectors.connect, "Connect an application", "connect_session.create"),
    _page(_CONNECTOR, connectors.show_connector, "One connector"),
    _form(_CONNECTOR, connectors.change_connector, "Rename, enable or disable", "connector.update"),
    _form(_CONNECTOR + "/check", connectors.check_connector, "Check the credentials", "connector.check", READ),
    _form(_CONNECTOR + "/renew", connectors.renew_connector, "Renew its credentials", "connect_session.create"),
    _form(_CONNECTOR + "/synchronize", connectors.synchronize, "Synchronize", "context_store.synchronize", READ),
    _form(_CONNECTOR + "/delete", connectors.delete_connector, "Delete", "connector.delete"),
    _page("/console/kinds", kinds.list_kinds, "Imported applications", ADMIN),
    _form("/console/kinds", kinds.import_kind, "Import an OpenAPI document", "kind.import", ADMIN),
    _form("/console/kinds/{kind}/delete", kinds.delete_kind, "Delete an imported kind", "kind.delete", ADMIN),
    _page(_KIND + "/folder.zip", kinds.export_version, "The files of an imported kind", ADMIN),
    _page(_KIND, kinds.show_version, "A version of an imported kind", ADMIN),
    _form(_KIND, kinds.serve_version, "Serve a version", "kind.serve", ADMIN),
    _page("/console/playground", playground.show_playground, "Find and try an operation"),
    # The use case checks the scope that the operation needs.
    _form("/console/playground", playground.run_operation, "Run an operation", "execute", READ),
    _page("/console/jobs", jobs.list_jobs, "All jobs"),
    _form("/console/jobs/retry", jobs.retry_jobs, "Run several again", "job.retry"),
    _page("/console/batches", batches.show_form, "The form of a batch", WRITE),
    _form("/console/batches", batches.start_batch, "Start a batch", "batch"),
    _page(_JOB, jobs.show_job, "One job"),
    _page(_JOB + "/result", api_jobs.job_result, "A job's result"),
    _form(_JOB + "/cancel", jobs.cancel_job, "Cancel", "job.cancel"),
    _form(_JOB + "/retry", jobs.retry_job, "Run again", "job.retry"),
    _page("/console/approvals", approvals.list_approvals, "Calls that wait for an approval", Scope.APPROVE),
    _page(approval_notice.PAGE, approval_notice.show_notice, "The notice of approvals", ADMIN),
    _form(approval_notice.PAGE, approval_notice.put_notice, "Set the notice", "approval_notice.put", ADMIN),
    _form(
        approval_notice.PAGE + "/delete",
        approval_notice.delete_notice,
        "Send no notice any longer",
        "approval_notice.delete",
        ADMIN,
    ),
    _page(_APPROVAL, approvals.show_approval, "One approval", Scope.APPROVE),
    _form(_APPROVAL, approvals.decide_approval, "Approve or deny", "approval.decide", Scope.APPROVE),
    _page("/console/schedules", schedules.list_schedules, "All schedules"),
    _page("/console/schedules/new", schedule_form.show_new, "The form of a new schedule", WRITE),
    _form("/console/schedules/new", schedule_form.create_schedule, "Create a schedule", "schedule.create"),
    _page(_SCHEDULE, schedules.show_schedule, "One schedule"),
    _page(_SCHEDULE + "/change", schedule_form.show_change, "The form of a schedule", WRITE),
    _form(_SCHEDULE + "/change", schedule_form.change_schedule, "Change", "schedule.update"),
    _form(_SCHEDULE, schedules.enable_schedule, "Enable or disable", "schedule.update"),
    _form(_SCHEDULE + "/run", schedules.run_schedule, "Run now", "schedule.run"),
    _form(_SCHEDULE + "/delete", schedules.delete_schedule, "Delete", "schedule.delete"),
    _page("/console/webhooks", webhooks.list_webhooks, "All webhooks"),
    _form("/console/webhooks", webhooks.create_webhook, "Create a webhook", "webhook.create"),
    _page(_WEBHOOK, webhooks.show_webhook, "One webhook"),
    _form(_WEBHOOK, webhooks.change_webhook, "Pause or enable", "webhook.update"),
    _form(_WEBHOOK + "/change", webhooks.change_subscription, "Change the subscription", "webhook.update"),
    _form(_WEBHOOK + "/test", webhooks.test_webhook, "Send a test event", "webhook.test"),
    _form(_WEBHOOK + "/rotate", webhooks.rotate_secret, "Create a new secret", "webhook.rotate"),
    _form(_WEBHOOK + "/deliveries/{event_id}/resend", webhooks.resend, "Deliver an event again", "webhook.resend"),
    _form(_WEBHOOK + "/delete", webhooks.delete_webhook, "Delete", "webhook.delete"),
    _page("/console/search", records.search_copy, "Search the copy"),
    _page("/console/search.csv", records.export_search, "The matching records as CSV"),
    _page("/console/audit", records.list_audit, "The audit log", ADMIN),
    _page("/console/audit.csv", records.export_audit, "The audit log as CSV", ADMIN),
    _page("/console/grants", grants.list_grants, "The access of agents' hosts", ADMIN),
    _form("/console/grants/{grant_id}/revoke", grants.revoke_grant, "Revoke", "agent.revoke", ADMIN),
    _page(people.PAGE, people.list_people, "People", ADMIN),
    _form(people.PAGE, people.add_person, "Add a person", "person.create", ADMIN),
    _page(_PERSON, people.show_person, "One person", ADMIN),
    _form(_PERSON, people.change_person, "Change a person", "person.update", ADMIN),
    _form(_PERSON + "/status", people.suspend_person, "Suspend or reactivate", "person.update", ADMIN),
    _form(_PERSON + "/delete", people.delete_person, "Delete a person", "person.delete", ADMIN),
    _page("/console/groups", groups.list_groups, "Groups of people", ADMIN),
    _form("/console/groups", groups.put_group, "Create or change a group", "group.update", ADMIN),
    _page("/console/sessions", sessions.list_sessions, "Sessions in which clients act for people", ADMIN),
    _form("/console/sessions/{person_session_id}/end", sessions.end_session, "End a session", "session.end", ADMIN),
    _page("/console/issuers", issuers.list_issuers, "Trusted issuers", ADMIN),
    _form("/console/issuers", issuers.add_issuer, "Trust an issuer", "issuer.add", ADMIN),
    _form("/console/issuers/{issuer_id}/delete", issuers.delete_issuer, "End the trust", "issuer.delete", ADMIN),
    _page("/console/scim", scim.list_tokens, "The tokens of identity providers", ADMIN),
    _form("/console/scim", scim.create_token, "Create a token for a provider", "scim_token.create", ADMIN),
    _form("/console/scim/{token_id}/revoke", scim.revoke_token, "Revoke a token", "scim_token.revoke", ADMIN),
    _page(policies.PAGE, policies.list_policies, "Policies and their effect", ADMIN),
    _form(policies.PAGE, policies.create_policy, "Store a new policy", "policy.put", ADMIN),
    _page(_POLICY, policies.show_policy, "One policy", ADMIN),
    _form(_POLICY, policies.change_policy, "Store a version of a policy", "policy.put", ADMIN),
    _form(_POLICY + "/delete", policies.delete_policy, "Delete a policy", "policy.delete", ADMIN),
    _page("/console/budgets", budgets.list_budgets, "Budgets and what is spent", ADMIN),
    _form("/console/budgets", budgets.put_budget, "Store or change a budget", "budget.put", ADMIN),
    _form("/console/budgets/{name}/delete", budgets.delete_budget, "Delete a budget", "budget.delete", ADMIN),
    _page(sandbox.PAGE, sandbox.show_sandbox, "The sandbox's requests and faults", ADMIN),
    _form(sandbox.PAGE + "/faults", sandbox.add_fault, "Add a fault to the sandbox", "sandbox.fault", ADMIN),
    _form(sandbox.PAGE + "/rude", sandbox.become_rude, "Make the sandbox's lists rude", "sandbox.rude", ADMIN),
    _form(sandbox.PAGE + "/calm", sandbox.calm_down, "End faults and rude behaviours", "sandbox.calm", ADMIN),
    _page("/console/settings", settings.show_settings, "Clients and OAuth apps", ADMIN),
    _form("/console/settings/clients", settings.create_client, "Create a client", "client.create", ADMIN),
    _page(_CLIENT, clients.show_client, "One client", ADMIN),
    _form(_CLIENT, clients.change_client, "Change URLs and groups", "client.update", ADMIN),
    _form(_CLIENT + "/secret", clients.rotate_secret, "Create a new secret", "client.rotate_secret", ADMIN),
    _form(_CLIENT + "/disable", clients.disable_client, "Disable a client", "client.disable", ADMIN),
    _form("/console/settings/apps", settings.put_app, "Set an own OAuth app", "oauth_app.put", ADMIN),
    _form("/console/settings/apps/delete", settings.delete_app, "Use the platform's app", "oauth_app.delete", ADMIN),
    _page("/console/{page:.*}", overview.show_missing, "An unknown page"),
)
