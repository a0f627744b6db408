"""GraphQL errors beside records: what came is listed, and what is missing is named."""

import pytest

from gateway.errors import UpstreamNotFound, UpstreamRejected

FORBIDDEN = {"type": "FORBIDDEN", "path": ["repository", "issues", "nodes", 0], "message": "Resource not accessible"}
LIST = {"owner": "acme", "repo": "shop"}


def issues(nodes, has_next=False):
    page_info = {"hasNextPage": has_next, "endCursor": "c"}
    return {"data": {"repository": {"issues": {"pageInfo": page_info, "nodes": nodes}}}}


@pytest.fixture
def github(connect):
    return connect("github", {"token": "t"})


async def test_errors_beside_records_name_what_is_missing(upstream, github):
    upstream.answers({**issues([None, {"id": "I_2"}], has_next=True), "errors": [FORBIDDEN]})

    page = await github.execute("issues", "list", LIST)

    assert page.decoded() == [{"id": "I_2"}]
    assert page.next["after"] == "c"
    assert "null for 1 of 2 records" in page.incomplete
    assert "Resource not accessible" in page.incomplete


async def test_a_list_with_errors_is_read_to_its_end_and_is_an_error_then(upstream, github):
    upstream.answers({**issues([None, {"id": "I_2"}], has_next=True), "errors": [FORBIDDEN]})
    upstream.answers(issues([{"id": "I_3"}]))
    found = []

    async def read():
        async for page in github.pages("issues", "list", LIST):
            found.extend(page.decoded())

    with pytest.raises(UpstreamRejected, match="Resource not accessible"):
        await read()

    assert found == [{"id": "I_2"}, {"id": "I_3"}]


@pytest.mark.parametrize("data", [issues([]), {"data": {"repository": None}}, {"data": None}])
async def test_errors_without_records_are_errors(upstream, github, data):
    upstream.answers({**data, "errors": [{**FORBIDDEN, "type": "NOT_FOUND"}]})

    with pytest.raises(UpstreamNotFound):
        await github.execute("issues", "list", LIST)
