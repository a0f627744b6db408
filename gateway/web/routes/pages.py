"""Pages for people, beside the console."""

from gateway.contract.oauth import SIGN_IN_CALLBACK
from gateway.jobs.file_links import PATH as FILE_PATH
from gateway.web.api import connect, downloads, pages
from gateway.web.console import provider_callback
from gateway.web.docs_site import handlers as docs_site
from gateway.web.route import Route

ROUTES: tuple[Route, ...] = (
    Route(
        "GET",
        "/connect/return",
        connect.finish_connect,
        "The redirect URI of a link's consent",
        "Pages",
        is_open=True,
        is_page=True,
        is_browser_step=True,
    ),
    Route(
        "GET",
        "/connect/{token}",
        connect.show_connect_page,
        "The page of a connect link",
        "Pages",
        is_open=True,
        is_page=True,
    ),
    Route(
        "POST",
        "/connect/{token}",
        connect.send_connect_form,
        "The form of a connect link",
        "Pages",
        audit="connector.create",
        is_open=True,
        is_page=True,
    ),
    Route(
        "GET",
        "/connect.js",
        pages.connect_script,
        "The script that opens a connect link from any page",
        "Pages",
        is_open=True,
        is_page=True,
    ),
    Route(
        "GET",
        "/static/{name:.+}",
        pages.static_file,
        "Style, scripts and icons",
        "Pages",
        is_open=True,
        is_page=True,
    ),
    Route(
        "GET",
        FILE_PATH,
        downloads.linked_file,
        "A stored file, by its signed link",
        "Pages",
        is_open=True,
        is_page=True,
    ),
    Route(
        "GET",
        SIGN_IN_CALLBACK,
        provider_callback.finish_sign_in,
        "The redirect URI for the sign-in provider",
        "Pages",
        audit="console.sign_in",
        is_open=True,
        is_page=True,
        is_browser_step=True,
    ),
    *(
        Route("GET", path, handler, summary, "Pages", is_open=True, is_page=True)
        for path, handler, summary in (
            ("/docs/api", docs_site.show_api, "The groups of the API's operations"),
            ("/docs/api/schemas", docs_site.show_api_schemas, "The members of requests and responses"),
            ("/docs/api/{group}", docs_site.show_api_group, "The operations of a group"),
            ("/docs/kinds", docs_site.show_kinds, "The kinds of applications"),
            ("/docs/kinds/{kind}", docs_site.show_kind, "A kind with all its operations"),
            ("/docs/errors", docs_site.show_errors, "All error codes"),
            ("/docs/errors/{code}", docs_site.show_error, "The meaning of an error code, and what to do"),
            ("/docs/search", docs_site.search_docs, "A search of the documents"),
            ("/docs/{page:.*}", docs_site.show_document, "A document"),
            ("/favicon.ico", pages.favicon, "The icon of the pages"),
        )
    ),
)
