"""The sandbox's own endpoints under `/_sandbox`: faults, rudeness, received requests, counters, files, a reset."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec
from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gateway.kinds.suggestions import did_you_mean
from gateway.sandbox import files
from gateway.sandbox.application import Application
from gateway.sandbox.faults import Fault, Faults
from gateway.sandbox.journal import CallJournal
from gateway.sandbox.notices import Notices
from gateway.sandbox.rude import Rude, RudeRequest
from gateway.sandbox.signed_grants import public_key_of
from gateway.sandbox.store import Row, Table

_Handler = Callable[[web.Request], Awaitable[web.Response]]


class HookRequest(BaseModel):
    """The webhook URL for the notices of a kind."""

    model_config = ConfigDict(extra="forbid")

    url: str
    #: the secret that signs them, unless the application creates it
    secret: str | None = Field(default=None, min_length=1)
    #: the share of the notices that is not sent
    lost: float = Field(default=0.0, ge=0, le=1)
    #: the share of the notices that is sent twice
    doubled: float = Field(default=0.0, ge=0, le=1)


class TokenLifetime(BaseModel):
    """The lifetime of access tokens that are issued from now on."""

    model_config = ConfigDict(extra="forbid")

    #: seconds; None for the kind's own lifetime
    expires_in: float | None = Field(default=None, gt=0)
    #: the kind; None for all kinds
    kind: str | None = None


class PublicKey(BaseModel):
    """The public key with which the assertions of an issuer are verified."""

    model_config = ConfigDict(extra="forbid")

    #: PEM
    public_key: str


def routes(
    applications: Sequence[Application],
    rude: Mapping[str, Rude],
    faults: Faults,
    journal: CallJournal,
    notices: Notices,
) -> list[web.RouteDef]:
    """The routes under `/_sandbox`."""
    control = _Control(applications, rude, faults, journal, notices)
    return [
        web.get("/_sandbox/faults", control.list_faults),
        web.post("/_sandbox/faults", _answering_bad_requests(control.add_fault)),
        web.delete("/_sandbox/faults", control.clear_faults),
        web.get("/_sandbox/rude", control.list_rude),
        web.post("/_sandbox/rude", _answering_bad_requests(control.become_rude)),
        web.delete("/_sandbox/rude", control.become_polite),
        web.get("/_sandbox/requests", control.list_requests),
        web.delete("/_sandbox/requests", control.clear_requests),
        web.get("/_sandbox/counters", control.counters),
        web.put("/_sandbox/tokens", _answering_bad_requests(control.set_lifetime)),
        web.put("/_sandbox/keys/{kind}/{issuer}", _answering_bad_requests(control.put_key)),
        web.delete("/_sandbox/keys/{kind}/{issuer}", _answering_bad_requests(control.remove_key)),
        web.get("/_sandbox/files/{number:[0-9]+}", control.file),
        web.put("/_sandbox/records/{kind}/{table}/{id}", _answering_bad_requests(control.put_record)),
        web.delete("/_sandbox/records/{kind}/{table}/{id}", _answering_bad_requests(control.remove_record)),
        web.put("/_sandbox/hooks/{kind}", _answering_bad_requests(control.put_hook)),
        web.delete("/_sandbox/hooks/{kind}", control.remove_hook),
        web.get("/_sandbox/notices", control.list_notices),
        web.delete("/_sandbox/state", control.reset),
        web.get("/_sandbox/health", control.health),
    ]


class _Control:
    def __init__(
        self,
        applications: Sequence[Application],
        rude: Mapping[str, Rude],
        faults: Faults,
        journal: CallJournal,
        notices: Notices,
    ) -> None:
        self._applications, self._rude = applications, rude
        self._faults, self._journal, self._notices = faults, journal, notices

    async def list_faults(self, request: web.Request) -> web.Response:
        """The active faults, oldest first."""
        return _json({"faults": self._faults.documents()})

    async def add_fault(self, request: web.Request) -> web.Response:
        fault = Fault.model_validate(await request.json())
        self._check_kind(fault.kind)
        self._faults.add(fault)
        return web.json_response({"faults": len(self._faults)}, status=201)

    async def clear_faults(self, request: web.Request) -> web.Response:
        self._faults.clear()
        return web.Response(status=204)

    async def list_rude(self, request: web.Request) -> web.Response:
        """The behaviours of each rude kind."""
        rude = {name: sorted(each.behaviours) for name, each in self._rude.items() if each.behaviours}
        return _json({"kinds": rude})

    async def become_rude(self, request: web.Request) -> web.Response:
        wanted = RudeRequest.model_validate(await request.json() if request.can_read_body else {})
        for kind in wanted.kinds:
            self._check_kind(kind)
        for name in wanted.kinds or self._rude:
            self._rude[name].become(frozenset(wanted.behaviours))
        return await self.list_rude(request)

    async def become_polite(self, request: web.Request) -> web.Response:
        self._become_polite()
        return web.Response(status=204)

    def _become_polite(self) -> None:
        for each in self._rude.values():
            each.become(frozenset())

    async def list_requests(self, request: web.Request) -> web.Response:
        """The latest calls, oldest first; `kind` and `path_prefix` select some of them."""
        kind, prefix = request.query.get("kind"), request.query.get("path_prefix", "")
        received = [
            call.document()
            for call in self._journal.calls
            if kind in (None, call.kind) and call.path.startswith(prefix)
        ]
        return _json({"requests": received})

    async def clear_requests(self, request: web.Request) -> web.Response:
        self._journal.clear()
        return web.Response(status=204)

    async def counters(self, request: web.Request) -> web.Response:
        return _json(self._journal.counters())

    async def set_lifetime(self, request: web.Request) -> web.Response:
        lifetime = TokenLifetime.model_validate(await request.json())
        self._check_kind(lifetime.kind)
        for application in self._applications:
            if lifetime.kind in (None, application.kind.name):
                application.grants.lifetime = lifetime.expires_in
        return web.Response(status=204)

    async def put_key(self, request: web.Request) -> web.Response:
        """Register the public key of an issuer, whose assertions the kind's token endpoint accepts from now on."""
        key = PublicKey.model_validate(await request.json())
        self._application(request).grants.keys[request.match_info["issuer"]] = public_key_of(key.public_key)
        return web.Response(status=204)

    async def remove_key(self, request: web.Request) -> web.Response:
        """Revoke the key of an issuer; the tokens that it has got stay valid."""
        self._application(request).grants.keys.pop(request.match_info["issuer"], None)
        return web.Response(status=204)

    async def file(self, request: web.Request) -> web.Response:
        """Size, checksum and ETag of the file with a number."""
        number = int(request.match_info["number"])
        digest = await asyncio.to_thread(files.sha256_of, number)
        return _json({"size": files.size_of(number), "sha256": digest, "etag": files.etag_of(number)})

    async def put_record(self, request: web.Request) -> web.Response:
        """Change a record as a user of the application would; an unknown id gets a copy of the table's first record."""
        application, table = self._table(request)
        row_id, members, now = request.match_info["id"], await request.json(), time.time()
        row = table.get(row_id)
        if row is None:
            first = next(iter(table))
            own_id = type(first.record[application.id_member])(row_id)
            row = table.put(Row(row_id, {**first.record, application.id_member: own_id}, dict(first.refs)))
        merged = {
            name: {**row.record[name], **value} if isinstance(value, dict) and row.record.get(name) else value
            for name, value in members.items()
        }
        application.change(row, merged, now)
        row.record.update(merged)
        application.invalidate_cache()
        self._notices.announce(application)
        return _json(row.record)

    async def remove_record(self, request: web.Request) -> web.Response:
        application, table = self._table(request)
        table.remove(request.match_info["id"])
        application.invalidate_cache()
        self._notices.announce(application)
        return web.Response(status=204)

    async def put_hook(self, request: web.Request) -> web.Response:
        """Send the notices of a kind to a URL, after the handshake."""
        hook = HookRequest.model_validate(await request.json())
        application = self._application(request)
        await self._notices.register(application, hook.url, hook.secret, lost=hook.lost, doubled=hook.doubled)
        return web.Response(status=204)

    async def remove_hook(self, request: web.Request) -> web.Response:
        self._notices.forget(request.match_info["kind"])
        return web.Response(status=204)

    async def list_notices(self, request: web.Request) -> web.Response:
        """The latest notices, oldest first, with the statuses of the responses."""
        return _json({"notices": list(self._notices.sent)})

    def _application(self, request: web.Request) -> Application:
        self._check_kind(request.match_info["kind"])
        return next(each for each in self._applications if each.kind.name == request.match_info["kind"])

    def _table(self, request: web.Request) -> tuple[Application, Table]:
        application = self._application(request)
        return application, application.store.table(request.match_info["table"])

    async def reset(self, request: web.Request) -> web.Response:
        """Restore records, tokens, jobs, faults, manners and counters to their initial state."""
        for application in self._applications:
            application.reset()
        self._become_polite()
        self._faults.clear()
        self._journal.clear()
        self._notices.clear()
        return web.Response(status=204)

    async def health(self, request: web.Request) -> web.Response:
        return _json({"kinds": [application.kind.name for application in self._applications]})

    def _check_kind(self, kind: str | None) -> None:
        kinds = [application.kind.name for application in self._applications]
        if kind is not None and kind not in kinds:
            raise ValueError(f"there is no kind {kind!r}; {did_you_mean(kind, kinds)}")


def _answering_bad_requests(handler: _Handler) -> _Handler:
    """The handler; it answers an invalid body with 400 and the errors."""

    async def handle(request: web.Request) -> web.Response:
        try:
            return await handler(request)
        except ValidationError as error:
            messages = [
                f"{'.'.join(str(part) for part in details['loc'])}: {details['msg']}" for details in error.errors()
            ]
            return web.json_response({"error": "; ".join(messages)}, status=400)
        except ValueError as error:
            return web.json_response({"error": str(error)}, status=400)

    return handle


def _json(document: Any) -> web.Response:
    return web.Response(body=msgspec.json.encode(document), content_type="application/json")
