"""The documentation: every page is served, every link works, every kind has a page."""

import gzip
import re
from html.parser import HTMLParser

import aiohttp
import pytest

from gateway.web.docs_site.documents import documents
from gateway.web.docs_site.markdown import page_of
from tests.harness.catalog import shipped_catalog

ADDRESSES = sorted(each.address for each in documents().values())
KINDS = sorted(kind.name for kind in shipped_catalog())


class Links(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        members = dict(attrs)
        self.anchors |= {members["id"]} if members.get("id") else set()
        for name in ("href", "src", "action"):
            if (target := members.get(name, "")).startswith(("/", "#")):
                self.links.add(target)


async def text_of(api, address):
    response = await api.get(address)
    assert response.status == 200, address
    return response.body.decode()


@pytest.mark.parametrize("address", ADDRESSES)
async def test_every_document_is_served(api, address):
    html = await text_of(api, address)

    assert html.count("<h1") == 1
    assert f'href="{address}"' in html or address == "/docs"


async def test_every_link_of_every_page_works(api):
    pages: dict[str, Links] = {}
    pending = ["/docs"]
    while pending:
        address = pending.pop()
        if address in pages:
            continue
        pages[address] = Links(await text_of(api, address))
        pending += [
            path
            for link in pages[address].links
            if (path := link.partition("#")[0]) and path.startswith("/docs") and path not in pages
        ]

    dangling = {
        f"{address} → {link}"
        for address, page in pages.items()
        for link in page.links
        for path, _, anchor in [link.partition("#")]
        if path in ("", *pages) and anchor and anchor not in pages[path or address].anchors
    }
    others = {path for page in pages.values() for link in page.links if (path := link.partition("#")[0]) not in pages}
    assert dangling == set()
    assert {*ADDRESSES, "/docs/api/schemas", *(f"/docs/kinds/{kind}" for kind in KINDS)} <= pages.keys()
    assert [each for each in others if each and (await api.get(each, allow_redirects=False)).status >= 400] == []


@pytest.mark.parametrize("kind", KINDS)
async def test_the_pages_of_a_kind_have_samples_to_connect_it_and_all_its_operations(api, kind):
    html, described = await text_of(api, f"/docs/kinds/{kind}"), shipped_catalog().kind(kind)

    assert f"gateway connect {kind}" in re.sub("<[^>]+>", "", html)
    entities = {name: await text_of(api, f"/docs/kinds/{kind}/{name}") for name in described.spec.entities}
    operations = described.operations.values()
    assert [each for each in operations if f'id="{each}"' not in entities[each.entity_id]] == []
    assert [each for each in operations if f'id="{each}"' not in html] == []  # links of earlier versions
    assert [each for each in described.spec.authentication if f"<code>{each}</code>" not in html] == []
    fields = [name for method in described.spec.authentication.values() for name in method.credentials]
    assert [name for name in fields if f"<code>{name}</code>" not in html] == []
    scopes = described.spec.oauth.scopes if described.spec.oauth else ()
    assert [scope for scope in scopes if f"<code>{scope}</code>" not in html] == []


@pytest.mark.parametrize(
    "address",
    [
        *("/docs/kinds", "/docs/kinds?q=crm", "/docs/kinds/github", "/docs/kinds/github/issues"),
        *("/docs/api/jobs", "/docs/search"),
    ],
)
async def test_pages_are_compressed_and_not_sent_again(front, address):
    async with aiohttp.ClientSession(front.base_url, auto_decompress=False) as session:
        answers = []
        for coding in ("gzip", "identity"):
            async with session.get(address, headers={"Accept-Encoding": coding}) as response:
                answers.append((response.headers, await response.read()))
        (packed, compressed), (plain, content) = answers
        async with session.get(address, headers={"Accept-Encoding": "gzip", "If-None-Match": packed["ETag"]}) as again:
            assert (again.status, await again.read()) == (304, b"")

    assert (packed["Content-Encoding"], plain.get("Content-Encoding")) == ("gzip", None)
    assert packed["ETag"] != plain["ETag"]
    assert gzip.decompress(compressed) == content
    assert len(compressed) * 2 < len(content)


async def test_pages_are_cached_for_minutes_and_missing_ones_not_at_all(api):
    addresses = ["/docs/kinds", "/docs/search?q=jobs", "/docs/nothing", "/docs/api/nothing", "/docs/errors/nothing"]
    answers = [await api.get(address) for address in addresses]

    assert [(each.status, each.headers["Cache-Control"]) for each in answers] == [
        *[(200, "public, max-age=300")] * 2,
        *[(404, "no-store")] * 3,
    ]


async def test_a_filtered_gallery_leaves_the_cached_one_whole(api):
    few, all_of_them = [await text_of(api, f"/docs/kinds{query}") for query in ("?q=zendesk", "")]

    assert f"{len(KINDS)} of {len(KINDS)} applications" in all_of_them
    assert f"{len(KINDS)} of {len(KINDS)} applications" not in few


async def test_a_path_with_a_slash_at_its_end_redirects_to_the_page(api):
    front, page = [await api.get(path, allow_redirects=False) for path in ("/docs/", "/docs/how-to/jobs/")]

    assert (front.status, front.headers["Location"]) == (308, "/docs")
    assert (page.status, page.headers["Location"]) == (308, "/docs/how-to/jobs")
    assert (await api.get("/docs//evil.example/", allow_redirects=False)).headers["Location"].startswith("/docs/")


@pytest.mark.parametrize(
    ("address", "nearest"),
    [
        ("/docs/how-to/job", "how-to/jobs"),
        ("/docs/api/job", "jobs"),
        ("/docs/kinds/support-dsk", "Support-Desk"),
        ("/docs/kinds/support-desk/tickts", "tickets"),
    ],
)
async def test_an_unknown_path_suggests_the_nearest_page(api, address, nearest):
    response = await api.get(address)

    assert response.status in (404, 422)
    assert nearest in response.body.decode()


@pytest.mark.parametrize(
    ("phrase", "address"),
    [
        ("rotate keys", "/docs/how-to/operate#rotate-keys-and-secrets"),
        ("rotates key", "/docs/how-to/operate#rotate-keys-and-secrets"),
        ("cancelJob cancel", "/docs/api/jobs#cancelJob"),
        ("ticket_bulk_updates", "/docs/kinds/support-desk/ticket_bulk_updates#ticket_bulk_updates.create"),
        ("outcome_unknown", "/docs/errors/outcome_unknown"),
        ("fuzzy filter", "/docs/reference/query-language"),
    ],
)
async def test_a_search_finds_documents_operations_and_errors(api, phrase, address):
    html = (await api.get("/docs/search", params={"q": phrase})).body.decode()

    assert f'href="{address}' in html.partition("<main")[2]


@pytest.mark.parametrize(
    ("phrase", "found"),
    [
        ("zendesk", ["support-desk", "zendesk-chat", "zendesk-talk"]),
        ("CRM contacts", ["crm-records", "crm-query", "zoho-crm"]),
        ("pull_requests", ["github"]),
        ("no such thing", []),
    ],
)
async def test_the_gallery_of_applications_is_filtered_by_application_category_and_entity(api, phrase, found):
    html = (await api.get("/docs/kinds", params={"q": phrase})).body.decode()

    shown = html.partition('id="kinds"')[2]
    assert re.findall(r'<li data-words="[^"]*"><a href="/docs/kinds/([\w-]+)"', shown) == found
    assert f"{len(found)} of {len(KINDS)} applications" in html
    assert ("No application has all of these words" in html) == (not found)


async def test_the_phrase_of_a_search_is_escaped(api):
    html = (await api.get("/docs/search", params={"q": "<script>alert(1)</script> zyzzyva"})).body.decode()

    assert "<script>alert" not in html
    assert "No page has all of these words" in html


def test_markdown_becomes_links_of_the_site_tabs_and_tables_that_scroll():
    document = documents()["docs/how-to/call.md"]
    text = (
        "# Title\n\n[jobs](jobs.md#top) [code](../../gateway/errors.py) <b>raw</b>\n\n| | b |\n|---|---|\n| 1 | 2 |\n\n"
        "```sh\ncurl x\n```\n\n```python\nprint(1)\n```\n\n```json\n{}\n```\n"
    )
    addresses = {"docs/how-to/jobs.md": "/docs/how-to/jobs"}

    html = page_of(type(document)(document.source, document.address, text), addresses).html

    assert '<a href="/docs/how-to/jobs#top">jobs</a> code &lt;b&gt;raw' in html
    assert '<div class="scroll" tabindex="0" role="group" aria-label="Title">' in html
    assert "<td></td>" in html.partition("<tbody>")[0]
    assert html.count('<div class="tab">') == 2
    assert re.findall(r'class="tab-label">(\w+)', html) == ["curl", "Python"]


async def test_the_openapi_document_is_compressed_if_accepted_and_has_an_etag_for_each_coding(front):
    async with aiohttp.ClientSession(auto_decompress=False) as session:

        async def get(**headers):
            url, given = f"{front.base_url}/openapi.json", {"Accept-Encoding": "identity", **headers}
            async with session.get(url, headers=given) as response:
                return response, await response.read()

        plain, document = await get()
        packed, compressed = await get(**{"Accept-Encoding": "br, gzip;q=0.8"})
        refused, whole = await get(**{"Accept-Encoding": "gzip;q=0"})
        known, nothing = await get(**{"Accept-Encoding": "gzip", "If-None-Match": packed.headers["ETag"]})

    assert gzip.decompress(compressed) == document == whole
    assert len(compressed) < len(document) / 5
    assert (packed.headers["Content-Encoding"], packed.headers["Vary"]) == ("gzip", "Accept-Encoding")
    assert "Content-Encoding" not in refused.headers
    assert plain.headers["ETag"] != packed.headers["ETag"]
    assert (known.status, nothing, known.headers["ETag"]) == (304, b"", packed.headers["ETag"])


async def test_the_favicon_is_the_gateways_icon(api):
    response = await api.get("/favicon.ico")

    assert (response.status, response.headers["Content-Type"]) == (200, "image/svg+xml")
    assert response.body.startswith(b"<svg")
