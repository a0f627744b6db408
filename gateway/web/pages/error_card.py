"""Errors as a card for people, also for requests that are refused before a handler runs."""

import re

from aiohttp import web

from gateway.errors import GatewayError, InternalError
from gateway.web.pages.rendering import Pages, accepts_html, html_response

#: the start of the paths of the console
CONSOLE = "/console"
#: the beginning of a head that names a page of the console and accepts HTML
_HEAD_OF_PAGE = re.compile(rb"[A-Z]+ /console[/? ].*?\r\naccept:[^\r\n]*text/html", re.DOTALL | re.IGNORECASE)


def is_for_page(path: str, accept: str) -> bool:
    """Whether a browser requests a page of the console."""
    return (path == CONSOLE or path.startswith(f"{CONSOLE}/")) and accepts_html(accept)


def is_head_of_page(begun: bytes) -> bool:
    """As `is_for_page`, for the beginning of a head that is not valid."""
    return _HEAD_OF_PAGE.match(begun) is not None


def words_of(error: GatewayError, status: int) -> tuple[str, str]:
    """The heading and the text of an error; those of a bug name nothing internal."""
    heading = error.title if status < 500 else "Something went wrong"
    return heading, InternalError().detail if status == 500 else error.detail


def error_card(pages: Pages, error: GatewayError, status: int, request_id: str, home: str | None) -> web.Response:
    """The error with the id of its request, and a link to `home`."""
    heading, text = words_of(error, status)
    html = pages.render("message.html", heading=heading, text=text, home=home, request_id=request_id)
    return html_response(html, pages.headers(), status)
