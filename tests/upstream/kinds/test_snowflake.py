"""Snowflake, beside what is tested of every kind: statements that take long, or that do more than they say."""

import time

import pytest

from gateway.errors import InvalidCredentials, InvalidParams, UpstreamTimeout
from gateway.kinds.loading import load_kind, shipped_specs
from gateway.upstream.requests import checked_environment
from tests.harness.machine import slowness
from tests.upstream.kinds.tables.snowflake import ADA, BOB, HANDLE, MANY, ONE, STATEMENTS, result

KIND = load_kind(shipped_specs() / "snowflake")
RUNNING = {"code": "333334", "message": "Asynchronous execution in progress.", "statementHandle": HANDLE}


@pytest.fixture
def snowflake(connect):
    return connect("snowflake", {"programmatic_access_token": "t"}, account="acme-main")


async def test_a_list_whose_statement_still_runs_is_incomplete_and_names_the_statement(upstream, snowflake):
    upstream.answers(RUNNING, 202)

    page = await snowflake.execute("record", "list", {"statement": MANY})

    assert (page.decoded(), page.next, page.is_proved_end) == ([], None, False)
    assert "still works on it" in page.incomplete
    assert page.meta["statement_handle"] == HANDLE


async def test_the_rows_of_a_statement_are_read_later_by_its_handle(upstream, snowflake):
    upstream.answers(result([["1", "Ada"]]))

    page = await snowflake.execute("record", "list", {"statementHandle": HANDLE, "partition": 0})

    assert (page.decoded(), page.next) == ([ADA], None)
    assert [asked.url.raw_path_qs for asked in upstream.received] == [f"{ONE}?partition=0"]


async def test_a_row_whose_statement_still_runs_is_not_missing(upstream, snowflake):
    upstream.answers(RUNNING, 202)

    with pytest.raises(UpstreamTimeout):
        await snowflake.execute("record", "get", {"statement": "SELECT 1"})


async def test_the_columns_of_a_result_count_more_than_those_that_the_caller_names(upstream, snowflake):
    whole = result([["1", "Ada"]], partitions=2)
    for body, status in ((RUNNING, 202), (whole, 200), (whole, 200), ({"data": [["2", None]]}, 200)):
        upstream.answers(body, status)
    turned = list(reversed([*ADA]))

    rows = (await snowflake.execute("record", "query", {"statement": MANY, "columns": turned})).decoded()

    assert rows == [ADA, BOB]


async def test_many_columns_of_one_name_are_numbered_in_a_moment(upstream, snowflake):
    upstream.answers({"data": [["1"] * 20_000]})
    begun = time.thread_time()

    answer = await snowflake.execute(
        "record", "list", {"statementHandle": "01b", "partition": 1, "columns": ["A"] * 20_000}
    )

    assert list(answer.decoded()[0])[-1] == "A_20000"
    assert time.thread_time() - begun < 2 * slowness()


async def test_a_long_query_is_followed_and_read_to_its_last_partition(upstream, snowflake):
    whole = result([["1", "Ada"]], partitions=2)
    for body, status in ((RUNNING, 202), (RUNNING, 202), (whole, 200), (whole, 200), ({"data": [["2", None]]}, 200)):
        upstream.answers(body, status)

    rows = (await snowflake.execute("record", "query", {"statement": MANY})).decoded()

    assert rows == [ADA, BOB]
    assert [(asked.method, asked.url.raw_path_qs) for asked in upstream.received] == [
        ("POST", f"{STATEMENTS}?async=true"),
        *[("GET", ONE)] * 3,
        ("GET", f"{ONE}?partition=1"),
    ]


@pytest.mark.parametrize(("rows", "is_whole"), [(9_999, True), (10_000, False)])
async def test_a_list_of_as_many_objects_as_show_lists_may_lack_others(upstream, snowflake, rows, is_whole):
    answer = result([["1", "Ada"]])
    answer["resultSetMetaData"]["numRows"] = rows
    upstream.answers(answer)

    page = await snowflake.execute("tables", "list", {})

    assert page.is_proved_end is is_whole


@pytest.mark.parametrize(
    ("operation", "statement"),
    [
        ("record.get", "SELECT 1; DROP TABLE users"),
        ("record.list", "WITH p AS PROCEDURE () AS $$ … $$ CALL p()"),
        ("record.query", "SELECT 1 ->> DELETE FROM users"),
        ("tables.list", "SHOW TABLES; DROP TABLE users"),
        ("record.create", "INSERT INTO t VALUES (1); DROP TABLE users"),
    ],
)
async def test_a_statement_that_does_more_than_its_first_word_is_not_sent(upstream, snowflake, operation, statement):
    with pytest.raises(InvalidParams) as refused:
        await snowflake.execute(*operation.split("."), {"statement": statement})

    assert [fault.field for fault in refused.value.faults] == ["statement"]
    assert upstream.received == []


@pytest.mark.parametrize("account", ["acme-main", "xy12345.eu-central-1", "xy12345.privatelink"])
def test_an_account_is_named_in_each_of_the_vendors_forms(account):
    assert checked_environment(KIND.spec, {"account": account}) == {"account": account}


@pytest.mark.parametrize("account", ["evil.example/x", "user@evil", "a:8443", ""])
def test_an_account_that_is_no_part_of_a_host_is_refused(account):
    with pytest.raises(InvalidCredentials):
        checked_environment(KIND.spec, {"account": account})
