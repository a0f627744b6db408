"""The documentation site of the process."""

from typing import TYPE_CHECKING

from aiohttp import web

from gateway.foundation.aio.remembered import Remembered

if TYPE_CHECKING:
    from gateway.web.docs_site.site import DocsSite  # imports libraries that nothing else needs

#: generated at the first request for it
DOCS_SITE: web.AppKey[Remembered["DocsSite"]] = web.AppKey("docs_site", Remembered)
