"""The use cases of inbound webhooks: create a connector's hook, receive a notice, bring synchronizations forward."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple
from uuid import UUID

from gateway.access.audit.log import Audit
from gateway.access.identity.model import Caller
from gateway.connectors.access import ConnectorAccess
from gateway.context_store.notices.model import Hook
from gateway.context_store.notices.notice import Notice, NoticedChange, changes_of
from gateway.context_store.notices.store import HookStore
from gateway.context_store.notices.verification import delivery_digest
from gateway.context_store.sync.service import Synchronization
from gateway.contract.hooks import HookView
from gateway.errors import FieldError, Forbidden, InvalidParams
from gateway.foundation.aio.clock import CLOCK
from gateway.foundation.aio.turns import in_thread
from gateway.foundation.telemetry.metrics import NOTICES
from gateway.kinds.catalog import Catalog
from gateway.kinds.notice_signatures import key_of
from gateway.kinds.notices import NoticeSpec
from gateway.kinds.paging import HEADER_PATH

log = logging.getLogger(__name__)

#: seconds after a request for the hook during which handshakes may add secrets
HANDSHAKE_WINDOW = 3600.0
#: maximum secrets from callers: the newest, and the previous one for notices that are already signed with it
_MAX_SECRETS = 2
#: maximum secrets from handshakes; an application has one for each of its webhooks
_MAX_HANDSHAKES = 20
#: seconds between the runs of an entity that notices bring forward
_PAUSE = 5.0
#: bytes of a notice that is read in a thread: it may report very many changes
_LARGE = 64 << 10


@dataclass(frozen=True, slots=True)
class Receipt:
    """The response to a notice."""

    #: the challenge to return in the body
    challenge: str | None = None
    #: name and value of the header to return, for a secret in a header
    header: tuple[str, str] | None = None


class InboundWebhooks:
    """The hooks of connectors, for callers and for applications that send notices."""

    def __init__(
        self,
        audit: Audit,
        catalog: Catalog,
        store: HookStore,
        connectors: ConnectorAccess,
        synchronization: Synchronization,
        base_url: str,
    ) -> None:
        self._audit = audit
        self._catalog = catalog
        self._store = store
        self._connectors = connectors
        self._synchronization = synchronization
        self._base_url = base_url.rstrip("/")

    async def create(self, caller: Caller, connector_id: UUID, secret: str | None) -> HookView:
        """The connector's hook, created if there is none.

        Handshakes may add secrets for an hour, and no longer after the first signed notice of a change.

        `secret` is added to the secrets that may sign notices. Raises NotFound, ConnectorNotReady for
        a kind that is not served, and InvalidParams for a kind without webhooks and for a secret in a wrong format.
        """
        with self._audit.record("hook.create", caller, connector_id=connector_id) as entry:
            record = await self._connectors.get(caller, connector_id)
            entry.kind = record.kind
            spec = self._catalog.served(record.kind).spec.webhooks
            if spec is None:
                raise InvalidParams(
                    f"the gateway accepts no webhooks of {record.kind}; its copies are synchronized by schedule"
                )
            if secret is not None:
                _require_key(spec, secret)
            if not self._synchronization.is_automatic:
                extra = {"connector_id": str(connector_id)}
                log.warning("notices to a hook change nothing while GATEWAY_SYNCHRONIZE is false", extra=extra)
            hook = await self._store.create(caller.organization_id, connector_id)
            entry.target = str(hook.id)
            if secret is not None:
                await self._store.add_secret(hook, secret, _MAX_SECRETS)
            if _has_secret_handshake(spec):
                await self._store.expect_handshake(hook, HANDSHAKE_WINDOW)
            return self._view(await self._store.get(caller.organization_id, connector_id))

    async def get(self, caller: Caller, connector_id: UUID) -> HookView:
        """The connector's hook; raises NotFound."""
        await self._connectors.get(caller, connector_id)
        return self._view(await self._store.get(caller.organization_id, connector_id))

    async def delete(self, caller: Caller, connector_id: UUID) -> None:
        """Delete the connector's hook: its URL accepts no more notices. Raises NotFound."""
        with self._audit.record("hook.delete", caller, connector_id=connector_id, target=str(connector_id)):
            await self._connectors.get(caller, connector_id)
            await self._store.delete(caller.organization_id, connector_id)

    def _url_of(self, hook: Hook) -> str:
        """The URL to enter at the application."""
        return f"{self._base_url}/hooks/{hook.id}"

    def _verification_token(self, hook: Hook) -> str | None:
        """The secret from a handshake's body, which a person copies to the application within the hour."""
        spec = self._spec(hook.kind)
        is_copied = spec is not None and _has_secret_handshake(spec) and not _is_in_header(spec)
        return hook.secrets[0] if is_copied and hook.secrets and hook.handshake_until > CLOCK.now() else None

    def _view(self, hook: Hook) -> HookView:
        """The hook as callers see it, without its secrets."""
        return HookView(
            id=str(hook.id),
            connector_id=str(hook.connector_id),
            url=self._url_of(hook),
            has_secret=bool(hook.secrets),
            created_at=hook.created_at,
            handshake_until=hook.handshake_until if hook.handshake_until > CLOCK.now() else None,
            verification_token=self._verification_token(hook),
            last_notice_at=hook.last_notice_at,
        )

    async def find(self, hook_id: UUID | None) -> Hook:
        """The hook that received a notice; raises Forbidden."""
        hook = None if hook_id is None else await self._store.find(hook_id)
        if hook is None:
            raise _refused("")
        return hook

    async def receive(self, hook: Hook, method: str, query: str, headers: Mapping[str, str], body: bytes) -> Receipt:
        """Store a notice that the application signed; a repeated one changes nothing. Raises Forbidden for others.

        `query` is the raw query string of the request; names of `headers` are case-insensitive.
        """
        notice = Notice(method, self._url_of(hook) + (f"?{query}" if query else ""), headers, body)
        spec = self._spec(hook.kind)
        if spec is None:
            reason = self._catalog.unserved_reason(hook.kind) or "its kind has no webhooks any more"
            log.warning("a notice was refused: %s", reason, extra={"connector_id": str(hook.connector_id)})
            raise _refused(hook.kind)
        if _has_secret_handshake(spec) and spec.signature.header not in notice.headers:
            return await self._handshake(spec, hook, notice)
        read = partial(_read, spec, hook)
        signed = await in_thread(read, notice) if len(body) > _LARGE else read(notice)
        if signed is None:
            raise _refused(hook.kind)
        if signed.challenge:
            NOTICES.add(hook.kind, "handshake")
            return Receipt(challenge=signed.challenge)
        changes = signed.changes
        is_new = await self._store.store(hook, signed.digest, changes)
        if changes and _has_secret_handshake(spec) and hook.handshake_until > CLOCK.now():
            # The application has its secret; a request for the hook expects handshakes again.
            await self._store.expect_handshake(hook, 0)
        NOTICES.add(hook.kind, "stored" if is_new else "repeated")
        return Receipt()

    async def bring_forward(self) -> int:
        """Make changed entities due, and read changed records; returns the number of both."""
        entities = await self._store.bring_forward(_PAUSE)
        async with self._store.taken_records() as found:
            for each in found:
                await self._synchronization.read_records(each.organization_id, each.connector_id, each.ids)
        return entities + sum(len(ids) for each in found for ids in each.ids.values())

    async def _handshake(self, spec: NoticeSpec, hook: Hook, notice: Notice) -> Receipt:
        assert spec.handshake is not None
        secret = notice.text_at(spec.handshake.path)
        try:
            _require_key(spec, secret)
        except InvalidParams:
            raise _refused(hook.kind) from None
        if hook.handshake_until <= CLOCK.now():
            log.warning("a handshake was refused: its time is over", extra={"connector_id": str(hook.connector_id)})
            raise _refused(hook.kind)
        await self._store.add_secret(hook, secret, _MAX_HANDSHAKES)
        NOTICES.add(hook.kind, "handshake")
        log.info("a handshake added a secret", extra={"connector_id": str(hook.connector_id), "kind": hook.kind})
        return Receipt(header=(spec.handshake.path[1], secret) if _is_in_header(spec) else None)

    def _spec(self, kind: str) -> NoticeSpec | None:
        """The webhooks of the kind's spec; None for a kind without webhooks, and for one that is not served."""
        served = self._catalog.kinds.get(kind)
        return None if served is None else served.spec.webhooks


class _Signed(NamedTuple):
    """What a notice says that the application has signed."""

    digest: bytes
    #: the challenge of a handshake; empty for a notice of changes
    challenge: str
    changes: Sequence[NoticedChange]


def _read(spec: NoticeSpec, hook: Hook, notice: Notice) -> _Signed | None:
    """What the notice says; None if none of the hook's secrets has signed it."""
    digest = delivery_digest(spec, notice, hook.secrets, CLOCK.now())
    if digest is None:
        return None
    is_challenge = spec.handshake is not None and spec.handshake.style == "challenge"
    challenge = notice.text_at(spec.handshake.path) if spec.handshake is not None and is_challenge else ""
    return _Signed(digest, challenge, () if challenge else changes_of(spec, notice))


def _has_secret_handshake(spec: NoticeSpec) -> bool:
    return spec.handshake is not None and spec.handshake.style == "secret"


def _is_in_header(spec: NoticeSpec) -> bool:
    return spec.handshake is not None and spec.handshake.path[:1] == (HEADER_PATH,)


def _require_key(spec: NoticeSpec, secret: str) -> None:
    """Raise InvalidParams for a secret that is not a valid key."""
    try:
        is_key = secret.isascii() and secret.isprintable() and bool(key_of(spec.signature, secret))
        message = "secret must be printable ASCII text, as the application shows it"
    except ValueError as error:
        is_key, message = False, f"secret {error}"
    if not is_key or len(secret) > 500:
        raise InvalidParams(message, faults=[FieldError("/secret", "secret", "invalid", message)])


def _refused(kind: str) -> Forbidden:
    """The error for an unknown hook, a forged notice and an old one: always the same, so that it reveals nothing."""
    NOTICES.add(kind, "refused")
    return Forbidden("the notice is not accepted")
