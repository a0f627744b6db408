"""The site, generated once per process: pages, navigation, the API reference, and the entries of the search."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from gateway.kinds.catalog import Catalog
from gateway.web.docs_site.api_reference import ApiReference, api_reference
from gateway.web.docs_site.code import code_html, sample_html
from gateway.web.docs_site.documents import MAP, documents
from gateway.web.docs_site.kind_reference import entity_reference, kind_reference
from gateway.web.docs_site.markdown import DocsPage, links_of, page_of, tabs_html
from gateway.web.docs_site.packed_page import PackedPage
from gateway.web.docs_site.search import SearchEntry
from gateway.web.error_advice import ADVICE
from gateway.web.pages.rendering import Pages

_PLACES = (
    ("documents", "/docs", "Documents"),
    ("api", "/docs/api", "API"),
    ("kinds", "/docs/kinds", "Applications"),
    ("errors", "/docs/errors", "Errors"),
    ("console", "/console", "Console"),
)


class DocsSite:
    """The site for these kinds and this OpenAPI document; its content does not change."""

    def __init__(self, catalog: Catalog, document: Mapping[str, Any]) -> None:
        addresses = {source: each.address for source, each in documents().items()}
        #: by URL path
        self.pages = {each.address: page_of(each, addresses) for each in documents().values()}
        #: group → title → URL path of each document, in the order of docs/README.md
        self.navigation = _navigation(addresses)
        self.api = api_reference(document)
        self.entries = (*_sections(self.pages), *_operations(self.api), *_kinds(catalog), *_errors())
        #: URL path → the pages that were requested before
        self.rendered: dict[str, PackedPage] = {}
        #: sorted by application
        self.kinds = sorted((kind.spec for kind in catalog), key=lambda spec: spec.application.casefold())

    def render(self, pages: Pages, address: str, template: str, active: str, **context: Any) -> str:
        """A page of the site as HTML."""
        return pages.render(
            f"docs/{template}.html",
            navigation=_PLACES,
            active=active,
            site=self,
            address=address,
            kinds=self.kinds,
            tabs=_tabs,
            code=lambda source, language: Markup(code_html(source, language)),  # noqa: S704  escaped there
            safe=Markup,
            reference_of=kind_reference,
            entity_of=entity_reference,
            **context,
        )


def _tabs(samples: Sequence[tuple[str, str]]) -> Markup:
    return Markup(tabs_html([(label, sample_html(label, source)) for label, source in samples]))  # noqa: S704  escaped there


def _navigation(addresses: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """The links of docs/README.md, each document in the first group that names it."""
    groups: dict[str, dict[str, str]] = {}
    seen = {addresses[MAP]}
    for group, text, source in links_of(documents()[MAP]):
        address = addresses.get(source)
        if address is not None and address not in seen:
            seen.add(address)
            groups.setdefault(group, {})[text[:1].upper() + text[1:]] = address
    return groups


def _sections(pages: Mapping[str, DocsPage]) -> Iterator[SearchEntry]:
    for page in pages.values():
        for section in page.sections:
            place = "" if section.title == page.title else page.title
            yield SearchEntry(f"{page.address}#{section.anchor}", section.title, place, section.text)


def _operations(api: ApiReference) -> Iterator[SearchEntry]:
    for group in api.groups:
        for each in group.operations:
            yield SearchEntry(
                each.address, f"{each.method} {each.path}", f"API · {group.name}", f"{each.summary} ({each.id})"
            )


def _kinds(catalog: Catalog) -> Iterator[SearchEntry]:
    for kind in catalog:
        address = f"/docs/kinds/{kind.name}"
        yield SearchEntry(address, kind.spec.application, "Kinds", f"{kind.name}: {kind.spec.description}")
        for operation in kind.operations.values():
            page, name = f"{address}/{operation.entity_id}", str(operation)
            yield SearchEntry(f"{page}#{name}", name, kind.spec.application, operation.action.description)


def _errors() -> Iterator[SearchEntry]:
    for code, advice in ADVICE.items():
        yield SearchEntry(f"/docs/errors/{code}", code, "Errors", advice)
