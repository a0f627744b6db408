"""The services that only front ends need: authentication, consent pages, search of operations."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import TYPE_CHECKING

from gateway.aio.remembered import Remembered
from gateway.connect_links.service import ConnectLinks
from gateway.connectors.service import ConnectorService
from gateway.db.pool import Database
from gateway.errors import NotFound
from gateway.events.access import EventAccess
from gateway.identity.attempts import Attempts
from gateway.identity.clients import Clients
from gateway.identity.console_sessions import ConsoleSessions
from gateway.identity.people import People
from gateway.identity.store import IdentityStore
from gateway.identity.tokens import Tokens
from gateway.jobs.access import JobAccess
from gateway.jobs.file_links import FileLinks
from gateway.kinds.catalog import Catalog
from gateway.oauth_server.hosts import Hosts
from gateway.oauth_server.service import AuthorizationServer
from gateway.oauth_server.store import AuthorizationStore
from gateway.operations.job_control import JobControl
from gateway.schedules.service import ScheduleService
from gateway.services.engine import open_engine
from gateway.services.stores import open_stores
from gateway.services.worker import WorkerServices, listening, open_jobs
from gateway.settings import Settings
from gateway.sign_in.model import ProviderSettings
from gateway.sign_in.store import SignInStore
from gateway.uploads.service import Uploads
from gateway.uploads.store import UploadStore
from gateway.vault.sealed_text import SealedText
from gateway.vault.vault import derived_key

if TYPE_CHECKING:
    from gateway.operation_search.index import OperationIndex
    from gateway.sign_in.service import ProviderSignIn


@dataclass(frozen=True)
class Services(WorkerServices):
    """The services of a front end."""

    tokens: Tokens
    clients: Clients
    jobs: JobAccess
    job_control: JobControl
    file_links: FileLinks
    #: attempts without a token, counted by address
    attempts: Attempts
    connector_service: ConnectorService
    uploads: Uploads
    connect_links: ConnectLinks
    schedules: ScheduleService
    events: EventAccess
    console_sessions: ConsoleSessions
    authorization: AuthorizationServer
    #: None if the settings name no provider
    provider_sign_in: "ProviderSignIn | None"
    #: seals the state that an agent's host holds between a tool's question to the user and the answer
    request_seals: SealedText
    #: seals the state that a browser holds between the pages of an authorization
    page_seals: SealedText
    #: created for the first search, because its libraries take 0.2 s to load
    operations: "Remembered[OperationIndex]"

    @property
    def sign_in_provider(self) -> "ProviderSignIn":
        """The sign-in through the operator's OpenID Connect provider; raises NotFound if there is none."""
        if self.provider_sign_in is None:
            raise NotFound("there is no sign-in provider; the operator can set GATEWAY_OIDC_ISSUER")
        return self.provider_sign_in


@asynccontextmanager
async def open_services(settings: Settings) -> AsyncIterator[Services]:
    """Open the services of a front end; raises Unavailable, KeyListError and SpecError if it cannot start."""
    async with (
        open_stores(settings) as stores,
        open_engine(stores) as engine,
        open_jobs(engine) as jobs,
        open_api(jobs) as services,
        listening(services),
    ):
        yield services


@asynccontextmanager
async def open_api(jobs: WorkerServices) -> AsyncIterator[Services]:
    """Open the services that only front ends need: authentication, consent pages, search."""
    settings, database, audit = jobs.settings, jobs.database, jobs.audit
    attempts = Attempts.at(settings.redis_url)
    tokens = Tokens(jobs.identity, settings.token_seconds, attempts)
    jobs.notifications.subscribe({"client": tokens.on_notify}, tokens.invalidate_all)
    connector_service = ConnectorService(
        audit,
        jobs.catalog,
        jobs.connector_store,
        jobs.identity,
        jobs.upstreams,
        jobs.oauth.apps.of,
        jobs.synchronization.begin,
    )
    grants = AuthorizationStore(database)
    job_access = JobAccess(jobs.job_store, jobs.job_waiters, jobs.identity)
    try:
        yield Services(
            **vars(jobs),
            tokens=tokens,
            attempts=attempts,
            jobs=job_access,
            job_control=JobControl(audit, jobs.resolver, jobs.job_store, jobs.acceptance),
            file_links=FileLinks(audit, derived_key(jobs.key_list, "file links"), jobs.identity, job_access),
            clients=Clients(audit, jobs.identity, is_embedded=settings.embedded),
            connector_service=connector_service,
            uploads=Uploads(audit, jobs.resolver, jobs.runs, UploadStore(database, jobs.vault)),
            schedules=ScheduleService(
                audit, jobs.catalog, jobs.connectors, jobs.schedule_store, jobs.job_store, jobs.acceptance, jobs.wakeup
            ),
            connect_links=ConnectLinks(
                audit,
                database,
                jobs.catalog,
                jobs.identity,
                jobs.connector_store,
                connector_service,
                jobs.oauth.flows,
                base_url=settings.base_url,
                is_embedded=settings.embedded,
            ),
            events=EventAccess(jobs.feed, jobs.identity),
            console_sessions=ConsoleSessions(database, jobs.identity, derived_key(jobs.key_list, "console forms")),
            authorization=AuthorizationServer(
                audit, jobs.catalog, grants, Hosts(grants, attempts), tokens, settings.base_url, settings.token_seconds
            ),
            provider_sign_in=_provider_sign_in(
                settings, database, jobs.identity, SealedText(derived_key(jobs.key_list, "provider sign-ins"))
            ),
            request_seals=SealedText(derived_key(jobs.key_list, "mcp request states")),
            page_seals=SealedText(derived_key(jobs.key_list, "authorization pages")),
            operations=Remembered(partial(asyncio.to_thread, _index_of, jobs.catalog), inf),
        )
    finally:
        await attempts.close()


def _index_of(catalog: Catalog) -> "OperationIndex":
    from gateway.operation_search.index import index_of  # takes 0.2 s, in a thread

    return index_of(catalog)


def _provider_sign_in(
    settings: Settings, database: Database, identity: IdentityStore, seals: SealedText
) -> "ProviderSignIn | None":
    if settings.oidc_issuer is None:
        return None
    from gateway.sign_in.provider import Provider  # imports the library for signed tokens, which is needed only here
    from gateway.sign_in.service import ProviderSignIn

    provider = ProviderSettings(
        settings.oidc_issuer,
        settings.oidc_client_id,
        settings.oidc_client_secret,
        tuple(settings.oidc_scopes.split()),
        settings.oidc_claim,
        settings.oidc_private,
    )
    store, people = SignInStore(database), People(database, identity)
    return ProviderSignIn(Provider(provider), store, people, seals, settings.base_url)
