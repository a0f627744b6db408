"""The sessions in which clients act for people, in the console, for administrators."""

from urllib.parse import urlencode

from aiohttp import web

from gateway.web.bodies import path_id
from gateway.web.console.page import console_page, see_other
from gateway.web.console.session import read_console_form
from gateway.web.keys import ACCESS, CALLER, SERVICES

_PAGE, _LIMIT = "/console/sessions", 25


async def list_sessions(request: web.Request) -> web.Response:
    """GET /console/sessions: the open sessions, the newest first."""
    delegation = request.app[SERVICES].operations.delegation
    page = await delegation.all(request[CALLER], request.query.get("cursor"), _LIMIT)
    return console_page(
        request,
        "sessions.html",
        active="people",
        sessions=page.data,
        more=page.next_cursor and urlencode({"cursor": page.next_cursor}),
    )


async def end_session(request: web.Request) -> web.Response:
    """POST /console/sessions/{person_session_id}/end: end it with those that were opened in it."""
    fields, session_id = await read_console_form(request), path_id(request, "person_session_id")
    person_id = await request.app[SERVICES].operations.delegation.end(request[CALLER], session_id)
    # This process forgets the token before it responds; the others are notified.
    request.app[ACCESS].tokens.on_notify(str(person_id))
    return see_other(f"/console/people/{person_id}" if fields.get("from") == "person" else _PAGE)
