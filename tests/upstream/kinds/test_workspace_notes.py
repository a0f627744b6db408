"""Workspace notes, beside what is tested of every kind: blocks, and searches by POST."""

import pytest

from gateway.contract.kinds import Effect
from gateway.kinds.loading import load_kind, shipped_specs
from gateway.kinds.params import validated
from tests.upstream.kinds.tables.workspace_notes import NEWEST_FIRST, PAGES, PICTURE, TEXT, TO_DO

KIND = load_kind(shipped_specs() / "workspace-notes")


def test_only_what_adds_something_is_a_write():
    effects = {str(operation): operation.action.effect for operation in KIND.operations.values()}

    assert {name for name, effect in effects.items() if effect is Effect.WRITE} == {
        "pages.create",
        "blocks.create",
        "comments.create",
    }
    assert effects["pages.list"] is effects["data_sources.list"] is Effect.READ


@pytest.mark.parametrize(
    "block",
    [
        {"type": "table", "table": {"table_width": 2, "children": []}},
        {"type": "tab", "tab": {"anything": [1]}},
        {"type": "toggle", "toggle": {"rich_text": TEXT, "children": [TO_DO]}},
        {"type": "code", "code": {"rich_text": TEXT, "language": "python"}},
        {"type": "image", "image": PICTURE},
    ],
)
def test_blocks_of_any_type_pass(block):
    params = {"block_id": "b1", "children": [block]}

    assert validated(KIND.operation("blocks", "create"), params) == params


async def test_the_next_page_of_a_search_is_requested_in_the_body(upstream, connect):
    upstream.answers({"results": [{"id": "p1"}], "next_cursor": "c2", "has_more": True})
    upstream.answers({"results": [{"id": "p2"}], "next_cursor": None, "has_more": False})
    connector = connect("workspace-notes", {"token": "internal"})

    pages = [page.decoded() async for page in connector.pages("pages", "list", {"limit": 1})]

    assert pages == [[{"id": "p1"}], [{"id": "p2"}]]
    first, second = (asked.body for asked in upstream.received)
    assert first == {"filter": PAGES, "sort": NEWEST_FIRST, "page_size": 1}
    assert second == {**first, "start_cursor": "c2"}


@pytest.mark.usefixtures("skipped_pauses")
async def test_an_overloaded_application_is_asked_again_once_it_says_so(upstream, connect):
    upstream.answers({"object": "error", "code": "service_overload"}, 529, {"Retry-After": "1"})
    upstream.answers({"id": "c1"})
    connector = connect("workspace-notes", {"token": "internal"})

    answer = await connector.execute("comments", "create", {"parent": {"page_id": "p1"}, "rich_text": TEXT})

    assert answer.decoded() == {"id": "c1"}
    assert len(upstream.received) == 2
