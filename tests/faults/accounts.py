"""Applications with an account for each connector: each record says whose it is, and each request who has sent it."""

import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from gateway.sandbox.app import create_sandbox
from gateway.sandbox.calls import decoded_basic
from tests.faults.upstream import Upstream
from tests.harness.catalog import shipped_catalog
from tests.harness.serving import served

#: an account, which is in its credentials, in its records, and in what is written to it
ACCOUNT = re.compile(r"acct-\w+-\d")
#: the address of the only file of an account
_FILE = "/accounts/{account}/file"
#: a member of records: the account to which they belong
_OWNER = "of_account"
#: the part of the sandbox's usual records
_SCALE = 0.02
#: members that identify a record
_IDS = ("id", "gid")


class Accounts(Upstream):
    """The sandbox's kinds for many accounts: it marks the records that it sends, and compares what it receives."""

    def __init__(self) -> None:
        super().__init__()
        #: requests by account
        self.requests_of: Counter[str] = Counter()
        #: requests with the credentials of one account that say that they are for another one
        self.foreign: list[str] = []
        #: how often each name was written, by the name
        self.written: Counter[str] = Counter()

    @asynccontextmanager
    async def serving(self) -> AsyncIterator["Accounts"]:
        app = create_sandbox(shipped_catalog(), seed=7, scale=_SCALE, job_seconds=0.2)
        app.middlewares.append(self._answer)
        async with served(app) as self.url:
            try:
                yield self
            finally:
                self.gate.set()

    @web.middleware
    async def _answer(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        account = account_of(request)
        if request.path.startswith("/accounts/"):
            return web.Response(text=request.path.split("/")[2])
        text = await request.text()
        self.requests_of[account] += 1
        named = set(ACCOUNT.findall(text))
        if named - {account}:
            self.foreign.append(f"{request.method} {request.path} of {account} names {', '.join(sorted(named))}")
        self.written.update(re.findall(rf"{account}\.[\w-]+", text))
        response = await handler(request)
        await self.gate.wait()
        if not isinstance(response, web.Response) or response.content_type != "application/json":
            return response
        # The sandbox has the records of all accounts.
        text = bytes(response.body or b"null").decode()
        named = set(ACCOUNT.findall(text)) - {account}
        marked = self._marked(json.loads(text), account, named)
        headers = {name: value for name, value in response.headers.items() if name.startswith(("X-", "Retry"))}
        return web.json_response(marked, status=response.status, headers=headers)

    def _marked(self, value: Any, account: str, others: Collection[str]) -> Any:
        """The JSON, in which each record names the account, without the records that others have written."""
        if isinstance(value, list):
            own = [each for each in value if not (others and _names(each, others))]
            return [self._marked(each, account, others) for each in own]
        if not isinstance(value, dict):
            return value
        marked = {name: self._marked(each, account, others) for name, each in value.items()}
        if "content_url" in marked:
            marked |= {"content_url": self.url + _FILE.format(account=account), "size": len(account)}
        if "subject" in marked:
            marked["subject"] = account  # a copy keeps the members that the kind declares
        return {**marked, _OWNER: account} if any(name in marked for name in _IDS) else marked


def _names(value: Any, accounts: Collection[str]) -> bool:
    """Whether a record names one of the accounts."""
    return isinstance(value, dict) and not set(ACCOUNT.findall(json.dumps(value))).isdisjoint(accounts)


def account_of(request: web.Request) -> str:
    """The account whose credentials the request has; empty without any."""
    scheme, _, value = request.headers.get("Authorization", "").partition(" ")
    text = ":".join(decoded_basic(value)) if scheme.lower() == "basic" else value
    found = ACCOUNT.search(text)
    return found[0] if found else ""
