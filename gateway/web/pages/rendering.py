"""Pages from templates, and their headers."""

from collections.abc import Mapping
from typing import Any

import jinja2
from aiohttp import web

from gateway.foundation.aio.clock import CLOCK
from gateway.kinds.find.entries import title_of
from gateway.web.pages.brand import Brand
from gateway.web.pages.marks import mark_of
from gateway.web.pages.static_files import static_url
from gateway.web.pages.tables import labelled
from gateway.web.pages.words import exact, relative, size

#: headers that keep a page out of caches and its URL from other sites. Not `no-referrer`: browsers would send the
#: pages' own forms with `Origin: null`, like forms of another site.
PRIVATE = {"Cache-Control": "no-store", "Referrer-Policy": "same-origin"}


def content_security_policy(frame_ancestors: str = "'none'", form_target: str = "") -> str:
    """A policy that allows resources of this origin only, no inline scripts or styles, and images of the style sheet.

    `frame_ancestors` are the origins that may show the page in a frame. `form_target` is another target of redirects
    after a form, to which browsers apply the policy too.
    """
    form_action = f"'self' {form_target}".rstrip()
    return (
        f"default-src 'none'; base-uri 'none'; connect-src 'self'; font-src 'self'; form-action {form_action}; "
        f"frame-ancestors {frame_ancestors}; img-src 'self' data:; script-src 'self'; style-src 'self'"
    )


#: the policy of the documentation, which is the same for all readers
DOCS_POLICY = content_security_policy()


class Pages:
    """The templates of the package; every value in them is escaped."""

    def __init__(self, brand: Brand) -> None:
        self.brand = brand
        self._templates = jinja2.Environment(
            loader=jinja2.PackageLoader("gateway.web.pages"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.globals.update(
            brand=brand.name, has_logo=brand.logo is not None, static_url=static_url, mark_of=mark_of
        )
        self._templates.filters.update(
            relative=lambda moment: relative(moment, CLOCK.now()),
            exact=exact,
            size=size,
            title_of=title_of,
            labelled=labelled,
        )

    def render(self, template: str, **context: Any) -> str:
        """The page as HTML."""
        return self._templates.get_template(template).render(**context)

    def headers(self, frame_ancestors: str = "'none'", form_target: str = "") -> Mapping[str, str]:
        """The headers of every page."""
        return {**PRIVATE, "Content-Security-Policy": content_security_policy(frame_ancestors, form_target)}


#: templates and style of the pages for people
PAGES = web.AppKey("pages", Pages)


def accepts_html(accept: str) -> bool:
    """Whether the `Accept` of a request is a browser's."""
    return "text/html" in accept


def html_response(html: str, headers: Mapping[str, str], status: int = 200) -> web.Response:
    return web.Response(text=html, status=status, content_type="text/html", charset="utf-8", headers=headers)
