"""The services of access: logs of what was done, and who may do it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.access.audit.chain import AuditChain, signers_of
from gateway.access.audit.log import Audit
from gateway.access.audit.metering import Metering
from gateway.access.budgets.point import BudgetPoint
from gateway.access.budgets.service import BudgetService
from gateway.access.budgets.store import BudgetStore
from gateway.access.identity.attempts import Attempts
from gateway.access.identity.clients import Clients
from gateway.access.identity.console_sessions import ConsoleSessions
from gateway.access.identity.directory import Directory
from gateway.access.identity.people import People
from gateway.access.identity.sessions import SessionStore
from gateway.access.identity.store import IdentityStore
from gateway.access.identity.tokens import Tokens
from gateway.access.oauth_server.hosts import Hosts
from gateway.access.oauth_server.service import AuthorizationServer
from gateway.access.oauth_server.store import AuthorizationStore
from gateway.access.policy.history import HistoryStore
from gateway.access.policy.language import Schema
from gateway.access.policy.point import PolicyPoint
from gateway.access.policy.schema import document
from gateway.access.policy.service import PolicyService
from gateway.access.policy.store import PolicyStore
from gateway.access.provisioning.store import ProvisioningStore
from gateway.access.provisioning.tokens import ScimTokens
from gateway.access.request_log.log import RequestLog
from gateway.access.sign_in.exchange import TokenExchange
from gateway.access.sign_in.issuer_store import IssuerStore
from gateway.access.sign_in.issuers import Issuers
from gateway.access.sign_in.model import ProviderSettings
from gateway.access.sign_in.store import SignInStore
from gateway.errors import NotFound
from gateway.foundation.aio.remembered import Remembered
from gateway.foundation.db.notifications import NotificationListener
from gateway.foundation.db.pool import Database
from gateway.foundation.vault.sealed_text import SealedText
from gateway.foundation.vault.vault import KeyList, derived_key
from gateway.kinds.catalog import Catalog
from gateway.settings import Settings

if TYPE_CHECKING:
    from gateway.access.provisioning.service import Provisioning
    from gateway.access.sign_in.service import ProviderSignIn


@dataclass(frozen=True, kw_only=True)
class LogServices:
    """What was done, written in batches."""

    audit: Audit
    chain: AuditChain
    metering: Metering
    requests: RequestLog


@asynccontextmanager
async def open_logs(
    database: Database, unsent: Path, key_list: KeyList, catalog: Catalog
) -> AsyncIterator[LogServices]:
    """Open the audit log and the request log; closing them writes what they hold.

    Audit entries that PostgreSQL does not take are saved in the folder `unsent`.
    """
    async with Audit(database, unsent).writing() as audit, RequestLog(database).writing() as requests:
        chain = AuditChain(database, signers_of(key_list), catalog.application_of)
        yield LogServices(audit=audit, chain=chain, metering=Metering(database), requests=requests)


@dataclass(frozen=True, kw_only=True)
class PolicyServices:
    """What callers may do beyond their scopes, and how much of it."""

    #: decides calls
    point: PolicyPoint
    #: takes calls from budgets
    budget_point: BudgetPoint
    #: what administrators do with policies and budgets
    change: PolicyService
    budgets: BudgetService


def policies_of(
    catalog: Catalog, database: Database, notifications: NotificationListener, audit: Audit
) -> PolicyServices:
    """The points that decide and count, which forget what others change, and the use cases of administrators."""
    store, budget_store = PolicyStore(database), BudgetStore(database)
    point = PolicyPoint(store, HistoryStore(database), notifications.is_current)
    budget_point = BudgetPoint(budget_store, notifications.is_current)
    notifications.subscribe({"policy": point.on_notify}, point.invalidate_all)
    notifications.subscribe({"client": point.on_client}, point.invalidate_clients)
    notifications.subscribe({"budget": budget_point.on_notify}, budget_point.invalidate_all)
    # Importing a kind changes the catalog.
    schema = Remembered(partial(asyncio.to_thread, _schema_of, catalog), inf, lambda: catalog.version)
    return PolicyServices(
        point=point,
        budget_point=budget_point,
        change=PolicyService(audit, store, point, schema),
        budgets=BudgetService(audit, budget_store, budget_point, catalog),
    )


def _schema_of(catalog: Catalog) -> Schema:
    return Schema.of(document(catalog))  # reads every entity of the catalog, which takes two seconds


@dataclass(frozen=True, kw_only=True)
class AccessServices:
    """Who sends a request to a front end, and what it may do."""

    tokens: Tokens
    clients: Clients
    directory: Directory
    #: attempts without a token, counted by address
    attempts: Attempts
    console_sessions: ConsoleSessions
    authorization: AuthorizationServer
    #: the issuers that organizations trust, and the exchange of their tokens
    issuers: Issuers
    exchange: TokenExchange
    #: what providers do with people and groups by SCIM, and their tokens
    provisioning: Remembered["Provisioning"]
    scim_tokens: ScimTokens
    #: None if the settings name no provider
    provider_sign_in: "ProviderSignIn | None"
    #: seals the state that an agent's host holds between a tool's question to the user and the answer
    request_seals: SealedText
    #: seals the state that a browser holds between the pages of an authorization
    page_seals: SealedText

    @property
    def sign_in_provider(self) -> "ProviderSignIn":
        """The sign-in through the operator's OpenID Connect provider; raises NotFound if there is none."""
        if self.provider_sign_in is None:
            raise NotFound("there is no sign-in provider; the operator can set GATEWAY_OIDC_ISSUER")
        return self.provider_sign_in


@asynccontextmanager
async def open_access(
    settings: Settings,
    *,
    key_list: KeyList,
    catalog: Catalog,
    database: Database,
    notifications: NotificationListener,
    audit: Audit,
    identity: IdentityStore,
) -> AsyncIterator[AccessServices]:
    """Open authentication, console sessions, and the authorization server for agents' hosts."""
    attempts = Attempts.at(settings.redis_url)
    tokens = Tokens(identity, settings.token_seconds, attempts, notifications.is_current)
    notifications.subscribe({"client": tokens.on_notify}, tokens.invalidate_all)
    grants = AuthorizationStore(database)
    people = People(database, identity, partial(notifications.deliver, "client"))
    issuer_store = IssuerStore(database)
    scim_tokens = ScimTokens(audit, database, identity, issuer=settings.oidc_issuer, base_url=settings.base_url)
    provisioning = partial(_provisioning, audit, ProvisioningStore(database, people), scim_tokens, settings.base_url)
    authorization = AuthorizationServer(
        audit,
        catalog,
        store=grants,
        hosts=Hosts(grants, attempts),
        tokens=tokens,
        issuer=settings.base_url,
        token_seconds=settings.token_seconds,
    )
    try:
        yield AccessServices(
            tokens=tokens,
            clients=Clients(audit, identity, is_embedded=settings.embedded),
            directory=Directory(audit, people, identity),
            attempts=attempts,
            console_sessions=ConsoleSessions(database, identity, derived_key(key_list, "console forms")),
            authorization=authorization,
            issuers=Issuers(audit, issuer_store, is_private=settings.oidc_private),
            exchange=TokenExchange(
                audit,
                database,
                identity=identity,
                people=people,
                sessions=SessionStore(database),
                issuers=issuer_store,
                tokens=tokens,
                resource_of=authorization.resource_of_client,
                base_url=settings.base_url,
                seconds=settings.token_seconds,
                is_private=settings.oidc_private,
            ),
            provisioning=Remembered(partial(asyncio.to_thread, provisioning), inf),
            scim_tokens=scim_tokens,
            provider_sign_in=_provider_sign_in(
                settings, database, people, SealedText(derived_key(key_list, "provider sign-ins"))
            ),
            request_seals=SealedText(derived_key(key_list, "mcp request states")),
            page_seals=SealedText(derived_key(key_list, "authorization pages")),
        )
    finally:
        await attempts.close()


def _provisioning(audit: Audit, store: ProvisioningStore, tokens: ScimTokens, base_url: str) -> "Provisioning":
    from gateway.access.provisioning.service import Provisioning  # loads the library of SCIM, which takes seconds

    return Provisioning(audit, store, tokens, base_url=base_url)


def _provider_sign_in(
    settings: Settings, database: Database, people: People, seals: SealedText
) -> "ProviderSignIn | None":
    if settings.oidc_issuer is None:
        return None
    # The library for signed tokens is needed only here.
    from gateway.access.sign_in.provider import Provider
    from gateway.access.sign_in.service import ProviderSignIn

    provider = ProviderSettings(
        issuer=settings.oidc_issuer,
        client_id=settings.oidc_client_id,
        client_secret=settings.oidc_client_secret,
        scopes=tuple(settings.oidc_scopes.split()),
        claim=settings.oidc_claim,
        is_private=settings.oidc_private,
    )
    return ProviderSignIn(Provider(provider), SignInStore(database), people, seals, settings.base_url)
