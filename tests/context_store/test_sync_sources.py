"""What is asked for, page after page, and where a run goes on."""

import msgspec
import pytest

from gateway.context_store.sync import sources
from gateway.context_store.sync.checkpoint import ChangesUnavailable, Checkpoint, ParentRecord, loaded
from gateway.upstream.pagination import page_of
from gateway.upstream.prepared import PreparedCall
from gateway.upstream.requests import UpstreamRequest, base_address, with_variables
from gateway.upstream.responses import OperationResult
from tests.harness.catalog import example_environment, shipped_catalog

CATALOG = shipped_catalog()
NOW = 1_767_225_600.0


def source(kind, entity):
    found = sources.source_of(CATALOG.kind(kind), entity)
    assert found is not None
    return found


def requested(call: PreparedCall) -> UpstreamRequest:
    spec = call.operation.spec
    request = call.request(base_address(spec, example_environment(spec)))
    given = {name: variable.example or "text" for name, variable in spec.environment.items()}
    return with_variables(request, call.variant.variable_headers, call.variant.variable_query, given)


def page(records=(), **meta):
    return OperationResult(result=msgspec.Raw(msgspec.json.encode(list(records))), meta=meta)


def after(source_, place, answer, parent=None):
    listing = source_.listing(place)
    params = listing.params(place, parent)
    return listing.after(place, page_of(listing.operation, params, answer, {}), params)


def test_every_copy_has_a_request_for_everything_and_one_for_changes(subtests):
    for kind in CATALOG:
        for entity in sources.synchronized(kind):
            with subtests.test(f"{kind.name} {entity}"):
                assert_requests(source(kind.name, entity))


def assert_requests(found):
    parent_spec = found.sync.parent
    members = [] if parent_spec is None else [path[0] for path in parent_spec.params.values()]
    parent = ParentRecord("P", dict.fromkeys(members, "P1")) if parent_spec else None

    for place in (
        found.begun(Checkpoint(), NOW, is_full=True),
        found.rested(Checkpoint(began=NOW, swept=NOW)).replace(began=NOW),
    ):
        listing = found.listing(place)
        params = listing.params(place, parent)
        call = PreparedCall.of(listing.operation, params)
        assert set(params) <= set(listing.operation.action.params)
        assert "{" not in requested(call).url.human_repr()


@pytest.mark.parametrize(
    ("entity", "asked"),
    [
        ("incidents", [("mode[one_of]", mode) for mode in ("standard", "retrospective", "test", "tutorial")]),
        ("users", [("include_inactive", "true")]),
    ],
)
def test_a_copy_requests_what_the_application_leaves_out_unasked(entity, asked):
    begin = Checkpoint(began=NOW)
    listing = source("incident-management", entity).listing(begin)

    request = requested(PreparedCall.of(listing.operation, listing.params(begin, None)))

    assert list(request.url.query.items())[: len(asked)] == asked


def test_a_graphql_list_takes_the_time_in_its_filter():
    issues = source("linear", "issues")
    place = issues.rested(Checkpoint(began=NOW, swept=NOW)).replace(began=NOW, token="c2")

    listing = issues.listing(place)
    request = requested(PreparedCall.of(listing.operation, listing.params(place, None)))

    variables = msgspec.json.decode(request.body)["variables"]
    assert variables == {"first": 100, "after": "c2", "filter": {"updatedAt": {"gte": "2025-12-31T23:58:00Z"}}}


def test_a_further_page_repeats_only_what_the_application_takes_there():
    orders = source("shopify", "orders")
    first = orders.rested(Checkpoint(began=NOW, swept=NOW)).replace(began=NOW)

    params = [orders.listing(place).params(place, None) for place in (first, first.replace(token="p2"))]

    assert params == [
        {"limit": 250, "status": "any", "updated_at_min": "2025-12-31T23:58:00Z"},
        {"limit": 250, "page_info": "p2"},
    ]


def test_parents_come_before_what_lies_below_them():
    chat = CATALOG.kind("team-chat")

    assert sources.in_order(chat, ["threads", "users", "channel_messages", "channels"]) == [
        *("channels", "channel_messages", "threads", "users"),
    ]
    assert sources.in_order(chat, ["threads", "users"]) == ["threads", "users"]
    assert sources.with_parents(chat, ["threads"]) == ["channels", "channel_messages", "threads"]


@pytest.mark.parametrize(
    ("place", "is_needed"),
    [
        (Checkpoint(), True),
        (Checkpoint(since=NOW - 900, swept=NOW - 3600), False),
        (Checkpoint(since=NOW - 900, swept=NOW - 86_400), True),
        (Checkpoint(since=NOW - 900), True),
    ],
)
def test_everything_is_read_at_first_and_once_a_day(place, is_needed):
    assert source("support-desk", "tickets").needs_everything(place, NOW) is is_needed


def test_a_list_that_cannot_tell_changes_is_read_whole_each_time():
    assert source("support-desk", "groups").needs_everything(Checkpoint(since=NOW, swept=NOW), NOW)


def test_a_place_comes_back_as_it_was_and_an_unknown_one_is_the_beginning():
    place = Checkpoint(since=1.5, began=2.5, swept=3.5, token="t", parent="p", pending=("a", "b"), is_removed=True)

    assert loaded(place.dumped()) == place
    assert loaded(None) == loaded("3") == loaded("{") == Checkpoint()


def test_an_export_by_cursor_starts_with_a_time_and_continues_with_its_cursor_forever():
    tickets = source("support-desk", "tickets")
    first = tickets.begun(Checkpoint(), NOW, is_full=True)

    second, has_second = after(tickets, first, page(after_cursor="c1", end_of_stream=False))
    third, has_third = after(tickets, second, page(after_cursor="c2", end_of_stream=True))
    rested = tickets.rested(third)
    later = tickets.begun(rested, NOW + 300, is_full=False)

    assert tickets.listing(first).params(first, None)["start_time"] == "0"
    assert (has_second, has_third) == (True, False)
    assert rested == Checkpoint(since=NOW, swept=NOW, token="c2")
    params = tickets.listing(later).params(later, None)
    assert (params["cursor"], "start_time" in params) == ("c2", False)


def test_an_export_without_a_cursor_at_its_end_keeps_the_last():
    tickets = source("support-desk", "tickets")

    assert after(tickets, Checkpoint(began=NOW, token="c1"), page(after_cursor=None)) == (
        Checkpoint(began=NOW, token="c1"),
        False,
    )


@pytest.mark.parametrize(
    ("start", "end_time", "is_end", "following", "has_more", "is_partial"),
    [
        (None, 1000, False, 1000, True, False),
        (1000, 2000, False, 2000, True, False),
        (2000, 2500, True, 2500, False, False),
        (2000, 2000, False, 2001, True, True),
        (2000, None, False, 2000, False, True),
        (2000, NOW - 30, False, NOW - 30, False, False),
    ],
)
def test_an_export_by_time_continues_at_the_time_it_names(start, end_time, is_end, following, has_more, is_partial):
    comments = source("support-desk", "ticket_comments")
    place = Checkpoint(began=NOW, since=start)

    found, goes_on = after(comments, place, page(end_time=end_time, end_of_stream=is_end))

    # The application has more records than those up to a moment ago: the run cannot say that others were deleted.
    may_lack = following == NOW - 30
    assert (found.replace(missing=None), goes_on) == (
        Checkpoint(began=NOW, since=following, may_lack=may_lack),
        has_more,
    )
    assert (found.missing is not None) is is_partial


def test_a_time_in_a_request_lies_as_far_back_as_the_application_wants():
    comments = source("support-desk", "ticket_comments")
    rested = comments.rested(Checkpoint(began=NOW, since=NOW - 10, swept=NOW))
    later = comments.begun(rested, NOW + 5, is_full=False)

    assert rested.since == NOW - 60
    assert comments.listing(later).params(later, None)["start_time"] == str(int(NOW - 60))


def test_changes_are_requested_from_a_little_before_the_last_run():
    incidents = source("incident-management", "incidents")
    whole = incidents.begun(Checkpoint(), NOW, is_full=True)
    later = incidents.begun(incidents.rested(whole), NOW + 900, is_full=False)

    assert "updated_at[gte]" not in incidents.listing(whole).params(whole, None)
    assert incidents.listing(later).params(later, None)["updated_at[gte]"] == "2025-12-31T23:58:00Z"


def test_a_query_names_the_time_within_its_text():
    accounts = source("crm-query", "accounts")
    later = Checkpoint(began=NOW, since=NOW - 120, swept=NOW)

    assert (
        ">= 1970-01-01T00:00:00Z ORDER"
        in accounts.listing(Checkpoint(began=NOW)).params(Checkpoint(began=NOW), None)["q"]
    )
    assert ">= 2025-12-31T23:58:00Z ORDER" in accounts.listing(later).params(later, None)["q"]


def test_the_newest_are_read_down_to_what_was_read_before():
    pages = source("workspace-notes", "pages")
    place = Checkpoint(began=NOW, since=NOW - 180)
    fresh = {"id": "a", "last_edited_time": "2026-01-01T00:00:00Z"}
    old = {"id": "b", "last_edited_time": "2025-12-31T23:56:00Z"}

    going_on = after(pages, place, page([fresh], next_cursor="n", has_more=True))
    reached = after(pages, place, page([fresh, old], next_cursor="n", has_more=True))
    sweeping = after(pages, Checkpoint(began=NOW), page([old], next_cursor="n", has_more=True))

    assert going_on == (place.replace(token="n"), True)
    assert reached == (place, False)
    assert sweeping == (Checkpoint(began=NOW, token="n"), True)


def test_a_search_in_the_order_of_time_continues_from_the_time_of_its_last_record():
    deals = source("crm-records", "deals")
    place = Checkpoint(began=NOW, since=NOW - 3600, token="200")
    last = {"id": "1", "properties": {"crm_lastmodifieddate": "2025-12-31T23:30:00.500Z"}}

    later, has_more = after(deals, place, page([last], next_cursor="400"))
    params = deals.listing(later).params(later, None)
    within = after(deals, later, page([last], next_cursor="100"))

    assert (later.token, later.position, later.since, has_more) == (None, NOW - 1800 + 0.5, NOW - 3600, True)
    assert within == (later.replace(token="100", may_lack=True), True)
    assert params["filterGroups"][0]["filters"][0] == {
        "propertyName": "crm_lastmodifieddate",
        "operator": "GTE",
        "value": "1767223800500",
    }
    assert "after" not in params


def test_a_list_that_is_cut_continues_from_the_time_of_its_last_record_and_loses_what_one_moment_has_more():
    tickets = source("freshdesk", "tickets")
    place = Checkpoint(began=NOW, token=300, position=NOW - 3600)
    beyond = "https://acme.freshdesk.com/api/v2/tickets?page=301"

    later, goes_on = after(tickets, place, page([{"updated_at": "2025-12-31T23:30:00Z"}], next=beyond))
    same, goes_on_within = after(tickets, place, page([{"updated_at": "2025-12-31T23:00:00Z"}], next=beyond))

    assert (later, goes_on) == (place.replace(token=None, position=NOW - 1800), True)
    assert (goes_on_within, "300 pages at most" in (same.missing or "")) == (False, True)


def test_ten_thousand_changes_in_one_second_make_everything_be_read():
    deals = source("crm-records", "deals")
    last = {"id": "1", "properties": {"crm_lastmodifieddate": "2026-01-01T00:00:00Z"}}

    with pytest.raises(ChangesUnavailable):
        after(deals, Checkpoint(began=NOW, since=NOW, token="9800"), page([last], next_cursor="10000"))


def test_everything_is_listed_with_associations_and_changes_are_searched_for():
    contacts = source("crm-records", "contacts")

    whole = contacts.listing(Checkpoint(began=NOW))
    changes = contacts.listing(Checkpoint(began=NOW, since=NOW))
    removed = contacts.listing(contacts.left(Checkpoint(began=NOW, since=NOW)))

    assert whole.params(Checkpoint(began=NOW), None)["associations"] == "companies"
    assert "crm_object_id" in whole.params(Checkpoint(began=NOW), None)["properties"].split(",")
    assert changes.operation.path.endswith("/search")
    assert "email" in changes.params(Checkpoint(began=NOW, since=NOW), None)["properties"]
    assert removed.params(Checkpoint(is_removed=True), None) == {"limit": 100, "archived": "true"}


def test_blocks_within_blocks_are_read_in_turn_and_pages_within_pages_are_not():
    blocks = source("workspace-notes", "blocks")
    parent = ParentRecord("page", {"id": "page"})
    start = blocks.entered(Checkpoint(began=NOW), parent)
    found = [
        {"id": "toggle", "type": "toggle", "has_children": True},
        {"id": "text", "type": "paragraph", "has_children": False},
        {"id": "inner", "type": "child_page", "has_children": True},
    ]

    first, _ = after(blocks, start, page(found, next_cursor="n", has_more=True), parent)
    second, has_more = after(blocks, first, page([], next_cursor=None, has_more=False), parent)
    third, is_going_on = after(blocks, second, page([], next_cursor=None, has_more=False), parent)

    assert blocks.listing(start).params(start, parent)["block_id"] == "page"
    assert (first.pending, first.token) == (("page", "toggle"), "n")
    assert (second.pending, second.token, has_more) == (("toggle",), None, True)
    assert blocks.listing(second).params(second, parent)["block_id"] == "toggle"
    assert (third.pending, is_going_on) == ((), False)


def test_a_list_begins_anew_for_a_token_that_has_expired_unless_it_was_forever():
    projects, tickets = source("work-management", "sections"), source("support-desk", "tickets")
    parent = ParentRecord("1", {"gid": "1"})

    again = projects.restarted(Checkpoint(began=NOW, token="t", parent="1"), parent)
    assert again == Checkpoint(began=NOW, parent="1", is_again=True)
    with pytest.raises(ChangesUnavailable):
        tickets.restarted(Checkpoint(began=NOW, since=NOW, token="t"), None)


@pytest.mark.parametrize(
    ("kind", "entity", "members", "is_resumed", "is_known", "can_restart"),
    [
        ("support-desk", "groups", {}, True, False, True),
        ("support-desk", "groups", {}, False, False, True),
        ("support-desk", "groups", {}, False, True, False),
        ("support-desk", "groups", {}, True, True, True),
        ("support-desk", "groups", {"is_again": True}, True, False, False),
        # Numbers of pages do not expire.
        ("jira", "projects", {}, False, False, False),
    ],
)
def test_a_refused_token_is_worth_a_second_reading_once(kind, entity, members, is_resumed, is_known, can_restart):
    checkpoint = Checkpoint(began=NOW, token="t", **members)

    assert source(kind, entity).can_restart(checkpoint, is_resumed=is_resumed, is_known=is_known) is can_restart


def test_messages_carry_their_channel():
    messages = source("team-chat", "channel_messages")
    channel = ParentRecord("C1", {"id": "C1"})
    place = messages.entered(Checkpoint(began=NOW, since=NOW), channel)

    assert messages.listing(place).params(place, channel)["oldest"] == "1767225600"
    assert messages.parent_members(channel) == {"channel_id": "C1"}


def test_the_pages_of_a_list_whose_records_may_move_overlap():
    agents = source("freshdesk", "agents")
    listing = agents.listing(Checkpoint(began=NOW))
    size = listing.params(Checkpoint(began=NOW), None)["per_page"]
    records = [{"id": number} for number in range(size)]

    second, has_more = after(
        agents, Checkpoint(began=NOW), page(records, next="https://acme.freshdesk.com/api/v2/agents?page=2")
    )
    params = listing.params(second, None)

    assert has_more
    assert (int(params["page"]) - 1) * params["per_page"] == size - 1
    assert second.at_beginning() == Checkpoint(began=NOW)
