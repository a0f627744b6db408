"""The prunings of every worker: deletions of rows and files that are no longer needed."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from gateway.access.audit.log import prune_audit
from gateway.access.audit.metering import PRUNE_EVENTS, PRUNE_UNKNOWN
from gateway.access.audit.usage import PRUNE as PRUNE_USAGE
from gateway.access.identity.console_sessions import prune_console_sessions
from gateway.access.oauth_server.store import prune_grants
from gateway.access.policy.history import PRUNE_HISTORY
from gateway.access.request_log.pruning import prune_request_log
from gateway.access.sign_in.issuer_store import prune_used_assertions
from gateway.access.sign_in.store import prune_provider_sign_ins
from gateway.connectors.consent.store import PRUNE as PRUNE_CONSENTS
from gateway.connectors.links.store import prune_connect_sessions
from gateway.context_store.notices.store import PRUNE as PRUNE_NOTICES
from gateway.context_store.notices.store import PRUNE_CHANGES
from gateway.events.pruning import prune_events
from gateway.events.store import PRUNE as PRUNE_DELIVERIES
from gateway.events.subscription_store import PRUNE as PRUNE_SUBSCRIPTIONS
from gateway.foundation.db.pruning import prune
from gateway.jobs.pruning import prune_jobs
from gateway.operations.organization_deletion import PRUNE_ORGANIZATIONS
from gateway.operations.uploads.store import PRUNE as PRUNE_UPLOADS
from gateway.run.services import Services


def prunings(services: Services) -> Sequence[tuple[str, float, Callable[[], Awaitable[object]]]]:
    """The name of each pruning, the seconds between two runs, and the function that runs it."""
    database, settings = services.database, services.settings
    return (
        ("job pruning", 60, partial(prune_jobs, database)),
        (
            "event pruning",
            60,
            partial(prune_events, database, settings.event_retention, settings.organization_events),
        ),
        (
            "request log pruning",
            60,
            partial(prune_request_log, database, settings.request_log_retention, settings.request_log_rows),
        ),
        ("webhook delivery pruning", 60, partial(prune, database, PRUNE_DELIVERIES)),
        ("subscription pruning", 60, partial(prune, database, PRUNE_SUBSCRIPTIONS)),
        ("notice pruning", 60, partial(prune, database, PRUNE_NOTICES)),
        ("noticed change pruning", 300, partial(prune, database, PRUNE_CHANGES)),
        ("policy history pruning", 600, partial(prune, database, PRUNE_HISTORY)),
        ("usage pruning", 600, partial(prune, database, PRUNE_USAGE)),
        ("usage event pruning", 600, partial(prune, database, PRUNE_EVENTS)),
        ("unsettled usage pruning", 600, partial(prune, database, PRUNE_UNKNOWN)),
        ("audit pruning", 600, partial(prune_audit, database, settings.audit_retention)),
        ("consent pruning", 60, partial(prune, database, PRUNE_CONSENTS)),
        ("connect link pruning", 60, partial(prune_connect_sessions, database)),
        ("console session pruning", 300, partial(prune_console_sessions, database)),
        ("used assertion pruning", 300, partial(prune_used_assertions, database)),
        ("provider sign-in pruning", 300, partial(prune_provider_sign_ins, database)),
        ("agent grant pruning", 300, partial(prune_grants, database)),
        ("upload pruning", 300, partial(prune, database, PRUNE_UPLOADS)),
        ("organization pruning", 600, partial(prune, database, PRUNE_ORGANIZATIONS)),
        ("export pruning", 60, services.operations.exports.delete_pages),
        ("file pruning", 300, services.jobs.files.prune),
    )
