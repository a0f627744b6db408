"""A kind that the sandbox simulates from its spec alone: credentials, paging, writes and errors."""

import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import aiohttp
import pytest
import yaml
from aiohttp.test_utils import TestServer
from pydantic import SecretStr

from gateway.context_store.sync.sources import source_of
from gateway.errors import ReauthorizationRequired, UpstreamNotFound, UpstreamRateLimited, UpstreamRejected
from gateway.kinds.catalog import Catalog, Kind, Operation
from gateway.kinds.spec import ConnectorSpec
from gateway.sandbox.app import create_sandbox
from gateway.upstream.auth import StaticAuthorizer, headers_for
from gateway.upstream.connector import UpstreamConnector
from gateway.upstream.egress import EgressPolicy
from gateway.upstream.oauth_tokens.client import TokenClient
from gateway.upstream.oauth_tokens.model import App, TokenSet
from gateway.upstream.rate_limits import RateScope
from gateway.upstream.transport import Transport
from gateway.upstream.upstreams import Upstreams
from tests.sandbox.conftest import GADGET_MAKER, GADGETS

Playing = Callable[..., AbstractAsyncContextManager[UpstreamConnector]]


@asynccontextmanager
async def playing(
    list_: dict[str, Any] | None = None, credentials: dict[str, str] | None = None, **spec: Any
) -> AsyncIterator[UpstreamConnector]:
    """A connector of gadget-maker in a sandbox; `list_` and `spec` replace members of its list and connector.yaml."""
    entity = yaml.safe_load(GADGETS)
    entity["actions"]["list"] |= list_ or {}
    document = {**yaml.safe_load(GADGET_MAKER), "entities": {"gadgets": entity}, **spec}
    kind = Kind(ConnectorSpec.model_validate(document))
    [method] = kind.spec.authentication.values()
    async with TestServer(create_sandbox(Catalog([kind]))) as server:
        origin = server.make_url("/").origin()
        async with Transport(EgressPolicy.of([origin])) as transport:
            authorizer = StaticAuthorizer(headers_for(method, credentials or {"token": "token"}))
            upstreams = Upstreams(transport, {kind.name: origin / "_kinds" / kind.name})
            scope = RateScope(id="gadgets", kind=kind.name)
            yield upstreams.connector(kind, {}, authorizer, scope)


STYLES: dict[str, dict[str, Any]] = {
    "page": {"style": "page", "param": "after", "size": "size", "total_pages": "n", "meta": {"n": "@.pages"}},
    "page from zero": {
        "style": "page",
        "param": "after",
        "size": "size",
        "first": 0,
        "end": "e",
        "meta": {"e": "last"},
    },
    "page of a stated size": {
        "style": "page",
        "param": "after",
        "size": "size",
        "stated_size": "limit",
        "meta": {"limit": "limit"},
    },
    "page by link": {"style": "page", "param": "after", "size": "size", "next": "n", "meta": {"n": "$link.next"}},
    "offset": {"style": "offset", "param": "after", "size": "size", "total": "total", "meta": {"total": "@.total"}},
    "last id": {"style": "last_id", "param": "after", "size": "size", "has_more": "more", "meta": {"more": "more"}},
    "last id and time": {"style": "last_id", "param": "after", "size": "size", "last_fields": {"name": "name"}},
    "link": {"style": "link", "param": "after", "size": "size", "next": "n", "meta": {"n": "links.next"}},
    "link by its relation": {
        "style": "link",
        "param": "after",
        "size": "size",
        "next": "n",
        "meta": {"n": "links.rel=next.href"},
    },
    "link that is always there": {
        "style": "link",
        "param": "after",
        "size": "size",
        "next": "n",
        "has_more": "more",
        "meta": {"n": "$link.next", "more": "$link.next.results"},
    },
    "cursor in a header": {
        "style": "cursor",
        "param": "after",
        "size": "size",
        "next": "n",
        "meta": {"n": "$header.x-next"},
    },
}


@pytest.mark.parametrize("style", STYLES)
async def test_lists_have_the_paging_style_of_the_spec(style):
    async with playing({"records": "data.gadgets"}, paging={"next": STYLES[style]}) as connector:
        pages = [page.decoded() async for page in connector.pages("gadgets", "list", {"size": 25})]

    # A page that only overlaps the one before has no records of its own.
    assert [len(page) for page in pages if page] == [25, 15]
    assert len({record["id"] for page in pages for record in page}) == 40


async def test_rows_are_lists_of_values_whose_columns_the_first_page_names():
    paging = {
        "style": "page",
        "param": "after",
        "size": "size",
        "first": 0,
        "total_pages": "pages",
        "order": "stable",
        "carried": {"columns": "columns", "pages": "pages"},
        "meta": {"columns": "columns.*.name", "pages": "pages.#"},
    }
    columns = {"names": "columns.*.name", "param": "columns"}

    async with playing({"records": "data", "columns": columns}, paging={"next": paging}) as connector:
        pages = [page async for page in connector.pages("gadgets", "list", {"size": 25})]

    assert [len(page.records) for page in pages] == [25, 15]
    assert len({record["id"] for page in pages for record in page.decoded()}) == 40
    assert all(page.meta["columns"] == list(pages[0].decoded()[0]) for page in pages)


@pytest.mark.parametrize(
    "method",
    [
        {"scheme": "api_key", "headers": {"X-Key": "{token}"}},
        {"scheme": "api_key", "headers": {"Authorization": "Token token={token}"}},
        {"scheme": "api_key", "query": {"key": "{token}"}},
        {"scheme": "basic", "username": "{token}", "password": "X"},
    ],
)
async def test_credentials_are_required_as_the_spec_describes(method):
    fields = {"token": {"description": "a token", "required": True, "secret": True}}
    authentication = {"key": {"title": "Key", "credentials": fields, **method}}

    async with playing(authentication=authentication) as connector:
        await connector.check()
    async with playing(authentication=authentication, credentials={"token": "bad-token"}) as refused:
        with pytest.raises(ReauthorizationRequired):
            await refused.check()


OBJECT = {"type": "object", "description": "a file"}
TEXT = {"type": "string"}


async def test_writes_are_stored():
    async with playing() as connector:
        made = (await connector.execute("gadgets", "create", {"gadget": {"name": "Lamp"}})).decoded()
        known = (await connector.execute("gadgets", "get", {"gadget_id": made["id"]})).decoded()

    assert known["name"] == "Lamp"


ENTITY: dict[str, Any] = {
    "description": "Issues.",
    "fields": {"number": "integer", "title": "string", "state": "string", "snoozed_until": "string?"},
    "actions": {
        "list": {
            "request": "GET /repos/{repo}/issues",
            "effect": "read",
            "description": "Issues of a repository.",
            "records": "$",
            "paging": "next",
            "params": {"repo": TEXT, "state": {"enum": ["open", "closed", "all"]}, "after": {}, "size": {}},
            "required": ["repo"],
        },
        "get": {
            "request": "GET /repos/{repo}/issues/{issue_number}",
            "effect": "read",
            "description": "One.",
            "record": "$",
            "params": {"repo": TEXT, "issue_number": {"type": "integer"}},
            "required": ["repo", "issue_number"],
            "example": {"repo": "a", "issue_number": 42},
        },
        "create": {
            "request": "POST /repos/{repo}/issues",
            "effect": "write",
            "description": "New.",
            "record": "$",
            "params": {"repo": TEXT, "title": TEXT},
            "required": ["repo", "title"],
        },
        "snooze": {
            "request": "POST /repos/{name}/issues/{issue_number}/snooze",
            "effect": "idempotent",
            "description": "Hides it.",
            "record": "$",
            "params": {"name": TEXT, "issue_number": {"type": "integer"}, "snoozed_until": TEXT},
            "required": ["name", "issue_number"],
        },
        "delete": {
            "request": "DELETE /repos/{repo}/issues/{number}",
            "effect": "idempotent",
            "description": "Gone.",
            "record": "$",
            "params": {"repo": TEXT, "number": {"type": "integer"}},
            "required": ["repo", "number"],
        },
        "rename": {
            "request": "PUT /repos/{repo}/issues",
            "effect": "idempotent",
            "description": "Changes the one issue of a list.",
            "record": "issues.0.issue",
            "constant_body": {"issues": [{"repo": "{repo}"}]},
            "params": {
                "repo": TEXT,
                "number": {"type": "integer", "as": "issues.0.number"},
                "title": {"type": "string", "as": "issues.0.title"},
            },
            "required": ["repo", "number"],
        },
        "download": {
            "request": "GET /repos/{repo}/archive/{ref}",
            "effect": "read",
            "description": "A file behind an address.",
            "download": {"url": "links.archive"},
            "params": {"repo": TEXT, "ref": TEXT},
            "required": ["repo", "ref"],
        },
    },
}
PAGED = {"next": {"style": "page", "param": "after", "size": "size", "next": "n", "meta": {"n": "$link.next"}}}


@asynccontextmanager
async def tracking(**spec: Any) -> AsyncIterator[UpstreamConnector]:
    """A connector of a kind with issues below repositories, whose ids are numbers in a member other than `id`."""
    entities = {"gadgets": yaml.safe_load(GADGETS), "issues": ENTITY}
    async with playing(entities=entities, **{"paging": PAGED, **spec}) as connector:
        yield connector


async def test_records_created_below_a_parent_belong_to_it():
    async with tracking() as connector:
        made = (await connector.execute("issues", "create", {"repo": "a", "title": "Broken"})).decoded()
        mine, others = [
            [page.decoded() async for page in connector.pages("issues", "list", {"repo": repo, "size": 100})]
            for repo in ("a", "b")
        ]
        example = (await connector.execute("issues", "get", {"repo": "a", "issue_number": 42})).decoded()

    assert made["number"] in [issue["number"] for issue in mine[0]]
    assert made["number"] not in [issue["number"] for issue in others[0]]
    assert example["number"] == 42


async def test_an_own_verb_of_the_application_changes_the_record_that_it_names():
    async with tracking() as connector:
        params = {"name": "a", "issue_number": 42, "snoozed_until": "2030-01-01"}
        await connector.execute("issues", "snooze", params)
        after = (await connector.execute("issues", "get", {"repo": "a", "issue_number": 42})).decoded()

    assert after["snoozed_until"] == "2030-01-01"


async def test_a_record_is_changed_in_a_list_with_one_item():
    async with tracking() as connector:
        params = {"repo": "a", "number": 42, "title": "Fixed"}
        changed = (await connector.execute("issues", "rename", params)).decoded()
        after = (await connector.execute("issues", "get", {"repo": "a", "issue_number": 42})).decoded()
        with pytest.raises(UpstreamNotFound):
            await connector.execute("issues", "rename", {**params, "number": 999_999})

    assert changed["title"] == after["title"] == "Fixed"


async def test_a_deleted_record_is_not_found():
    async with tracking() as connector:
        gone = await connector.execute("issues", "delete", {"repo": "a", "number": 42})
        with pytest.raises(UpstreamNotFound):
            await connector.execute("issues", "get", {"repo": "a", "issue_number": 42})

    assert gone.decoded() is None


async def test_a_file_is_downloaded_from_the_url_in_its_record():
    async with tracking() as connector, connector.download("issues", {"repo": "a", "ref": "main"}) as file:
        size = sum([len(chunk) async for chunk in file])

    assert size >= 100_000


async def test_the_published_rate_limit_is_enforced_and_reported_in_headers():
    allowances = [{"limit": "x-limit", "remaining": "x-remaining", "reset": "x-reset"}]
    async with tracking(rate_limit={"requests": 2, "seconds": 3600, "allowances": allowances}) as connector:
        await connector.execute("gadgets", "list")
        await connector.execute("gadgets", "list")
        with pytest.raises(UpstreamRateLimited) as limited:
            await connector.execute("gadgets", "list")

    assert 3000 < (limited.value.retry_after or 0) <= 3600


async def test_a_query_that_the_spec_does_not_allow_is_refused():
    async with tracking() as connector:
        operation = connector.kind.operation("issues", "list")
        with pytest.raises(UpstreamRejected, match="state: odd is not allowed"):
            await connector.call(operation, {"repo": "a", "state": "odd"})


@pytest.mark.parametrize(
    "list_",
    [
        {"records": "data.gadgets.edges", "unwrap": "node"},
        {"records": "gadgets", "map_key": "id"},
        {"records": "0.hits"},
        {"records": "boards.*.page.items"},
    ],
)
async def test_responses_have_the_format_of_the_spec(list_):
    async with playing({**list_, "paging": None}) as connector:
        found = (await connector.execute("gadgets", "list")).decoded()

    assert len(found) == 40
    assert all({"id", "name"} <= set(record) for record in found)


DOCUMENTS = {
    "list": "query L($first: Int, $after: String) { gadgets { nodes { id } pageInfo { endCursor hasNextPage } } }",
    "get": "query G($id: ID!) { gadget(id: $id) { id name } }",
    "create": "mutation C($input: GadgetInput!) { gadgetCreate(input: $input) { gadget { id name } } }",
}
INFO = {"end": "@.pageInfo.endCursor", "more": "@.pageInfo.hasNextPage"}
GRAPHQL = {
    "list": {
        "records": "data.gadgets.nodes",
        "paging": "next",
        "params": {"first": {"type": "integer"}, "after": TEXT},
    },
    "get": {"record": "data.gadget", "params": {"id": {}}, "required": ["id"]},
    "create": {"record": "data.gadgetCreate.gadget", "params": {"name": {"as": "input.name"}}, "effect": "write"},
}


async def test_graphql_documents_choose_their_operation():
    common = {"request": "POST /graphql", "effect": "read", "description": "Graph."}
    actions = {name: {**common, **action, "graphql": DOCUMENTS[name]} for name, action in GRAPHQL.items()}
    entity = {**yaml.safe_load(GADGETS), "actions": actions}
    paging = {
        "next": {"style": "cursor", "param": "after", "size": "first", "next": "end", "has_more": "more", "meta": INFO}
    }

    async with playing(entities={"gadgets": entity}, paging=paging) as connector:
        pages = [page.decoded() async for page in connector.pages("gadgets", "list", {"first": 25})]
        made = (await connector.execute("gadgets", "create", {"name": "Lamp"})).decoded()
        known = (await connector.execute("gadgets", "get", {"id": made["id"]})).decoded()

    assert [len(page) for page in pages] == [25, 15]
    assert (made["name"], known["name"]) == ("Lamp", "Lamp")


@pytest.mark.parametrize(
    ("content_type", "gadget"),
    [
        ("application/x-www-form-urlencoded", {"name": "Lamp", "colour": "red"}),
        ("multipart/form-data", {"filename": "a.txt", "content": "aGVsbG8="}),
    ],
)
async def test_bodies_of_every_type_are_parsed(content_type, gadget):
    entity = yaml.safe_load(GADGETS)
    entity["actions"]["create"] |= {"content_type": content_type, "params": {"gadget": OBJECT}}

    async with playing(entities={"gadgets": entity}) as connector:
        made = (await connector.execute("gadgets", "create", {"gadget": gadget})).decoded()

    assert gadget.items() <= made.items()


async def test_two_kinds_with_the_same_paths_share_a_sandbox():
    document = {**yaml.safe_load(GADGET_MAKER), "entities": {"gadgets": yaml.safe_load(GADGETS)}}
    kinds = [Kind(ConnectorSpec.model_validate({**document, "kind": name})) for name in ("one", "two")]
    headers = {"Authorization": "Bearer token"}
    async with TestServer(create_sandbox(Catalog(kinds))) as server, aiohttp.ClientSession() as http:
        await http.post(server.make_url("/_kinds/one/api/gadgets"), headers=headers, json={"gadget": {"name": "Lamp"}})
        names = []
        for path in ("/_kinds/one/api/gadgets", "/_kinds/two/api/gadgets", "/api/gadgets"):
            async with http.get(server.make_url(f"{path}?size=50"), headers=headers) as answer:
                names.append("Lamp" in [each["name"] for each in (await answer.json())["gadgets"]])

    assert names == [True, False, True]


@pytest.mark.parametrize(("style", "encoding"), [("basic", "form"), ("body", "json")])
async def test_tokens_are_requested_as_the_spec_describes(style, encoding):
    oauth = {
        "authorization_url": "https://gadgets.example.com/authorize",
        "token_url": "https://gadgets.example.com/token",
        "client_authentication": style,
        "encoding": encoding,
    }
    fields = {name: {"description": name, "secret": True} for name in ("refresh_token", "client_id", "client_secret")}
    authentication = {"oauth": {"title": "O", "scheme": "bearer", "token": "t", "oauth": True, "credentials": fields}}
    document = {**yaml.safe_load(GADGET_MAKER), "entities": {}, "oauth": oauth, "authentication": authentication}
    spec = ConnectorSpec.model_validate(document)
    async with TestServer(create_sandbox(Catalog([Kind(spec)]))) as server:
        origin = server.make_url("/").origin()
        async with Transport(EgressPolicy.of([origin])) as transport:
            upstreams, scope = Upstreams(transport, {spec.kind: origin}), RateScope(id="gadgets:tokens", kind=spec.kind)
            app = App("id", SecretStr("secret"), is_own=True)
            tokens = TokenClient(spec, {}, upstreams, scope)
            renewed = await tokens.renew(app, {"refresh_token": "r-1"}, spec.authentication["oauth"])

    assert isinstance(renewed, TokenSet), renewed
    assert renewed.credentials["access_token"].startswith("access-")


@pytest.mark.parametrize(
    ("failure", "document"),
    [
        ({"code": ["errors.0.extensions.code"], "message": ["errors.0.message"]}, ["errors", 0, "message"]),
        ({"code": ["0.errorCode"], "message": ["0.message"]}, [0, "message"]),
        ({"message": ["error"]}, ["error"]),
    ],
)
async def test_an_error_has_the_format_of_the_spec(failure, document):
    async with playing(failure=failure, credentials={"token": "bad"}) as connector:
        [request] = connector.dry_run("gadgets", "list")
        async with aiohttp.ClientSession() as http, http.get(request["url"], headers={"Authorization": "no"}) as answer:
            said = await answer.json()

    for member in document:
        said = said[member]
    assert (answer.status, said) == (401, "no credentials")


async def test_the_lists_of_the_synchronizer_are_answered():
    entity = yaml.safe_load(GADGETS)
    read = {"request": "GET /export/gadgets", "records": "gadgets", "paging": "next"}
    removed = {"request": "GET /deleted_gadgets", "records": "gadgets"}
    entity["search"] = {"fields": {"id": "integer", "name": "string"}, "sync": {**read, "deletions": removed}}
    async with playing(entities={"gadgets": entity}) as connector:
        listed = [len((await connector.call(source, {})).decoded()) for source in _listings(connector.kind)]

    assert listed == [40, 0]


def _listings(kind: Kind) -> list[Operation]:
    source = source_of(kind, "gadgets")
    assert source is not None
    assert source.removed is not None
    return [source.everything.operation, source.removed.operation]


async def test_a_record_that_is_the_first_of_a_list_is_found_by_its_id_in_the_query():
    entity = yaml.safe_load(GADGETS)
    params = {"id": {"type": "string", "as": "ids", "description": "id"}}
    get = {
        "request": entity["actions"]["list"]["request"],
        "effect": "read",
        "description": "One.",
        "record": "gadgets.0",
    }
    entity["actions"]["get"] = {**get, "params": params, "required": ["id"], "example": {"id": "x"}}
    async with playing(entities={"gadgets": entity}) as connector:
        listed = (await connector.execute("gadgets", "list")).decoded()[1]
        found = (await connector.execute("gadgets", "get", {"id": str(listed["id"])})).decoded()
        with pytest.raises(UpstreamNotFound):
            await connector.execute("gadgets", "get", {"id": "999999"})

    assert found["id"] == listed["id"]


async def test_a_list_of_one_is_answered_by_one_object():
    entity = yaml.safe_load(GADGETS)
    listed = {name: value for name, value in entity["actions"]["list"].items() if name != "paging"}
    entity["actions"] = {"list": {**listed, "records": "gadget", "single": True, "params": {}, "example": {}}}
    async with playing(entities={"gadgets": entity}) as connector:
        records = (await connector.execute("gadgets", "list")).decoded()

    assert len(records) == 1
    assert records[0]["id"]


async def test_texts_have_values_of_their_examples_and_formats():
    entity = yaml.safe_load(GADGETS)
    entity["fields"] = {
        "id": "string",
        "state": {"type": "string", "examples": ["open"]},
        "contact": {"type": "string", "format": "email"},
        "due": {"type": "string", "format": "date"},
    }
    async with playing(entities={"gadgets": entity}) as connector:
        record = (await connector.execute("gadgets", "list")).decoded()[0]

    assert record["state"] == "open"
    assert "@" in record["contact"]
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", record["due"])


async def test_a_list_whose_url_would_be_too_long_is_answered_by_post(connect):
    wanted = {"base_id": "appExample0000001", "table_id_or_name": "Tasks", "pageSize": 30}
    formula = " ".join(["OR({Status}='Done')"] * 1400)

    pages = [
        page.decoded()
        async for page in connect("airtable").pages("records", "list", {**wanted, "filterByFormula": formula})
    ]

    assert [len(page) for page in pages] == [30, 10]


async def test_a_path_that_several_entities_share_names_the_record_of_any():
    gadgets, widgets = yaml.safe_load(GADGETS), yaml.safe_load(GADGETS)
    for entity, name in ((gadgets, "gadget"), (widgets, "widget")):
        path = {"request": f"GET /{{{name}_id}}", "params": {f"{name}_id": {"type": "string", "description": "id"}}}
        get = {**path, "effect": "read", "description": "One.", "record": "$", "required": [f"{name}_id"]}
        entity["actions"] = {"list": entity["actions"]["list"], "get": {**get, "example": {f"{name}_id": "x"}}}
    widgets["actions"]["list"] = {**widgets["actions"]["list"], "request": "GET /widgets"}
    async with playing(entities={"gadgets": gadgets, "widgets": widgets}) as connector:
        for entity in ("gadgets", "widgets"):
            listed = (await connector.execute(entity, "list")).decoded()[1]
            read = (await connector.execute(entity, "get", {f"{entity[:-1]}_id": str(listed["id"])})).decoded()

            assert read["id"] == listed["id"]
