"""The search for operations by plain words, with the questions beside this file."""

import pytest

from gateway.contract.kinds import Effect
from gateway.kinds.find.entries import entries_of
from gateway.kinds.find.signatures import signature_of
from gateway.kinds.find.vectors import folder
from tests.harness.blocked_loop import LIMIT
from tests.harness.catalog import shipped_catalog
from tests.harness.work import seconds_at_most
from tests.kinds.find.evaluation import (
    CHARACTERS_OF_A_TOKEN,
    FRESH,
    NOTHING,
    OWN,
    UNSEEN,
    evaluated,
    index_of_words,
    questions_in,
    searching,
    shipped_index,
)

CATALOG = shipped_catalog()
NO_INCIDENTS = "incident.io: incident-management has no operation that creates incidents; incidents: list, get"
NO_DELETE = "Zendesk: support-desk has no operation that deletes"
#: the extra `semantic`, which all installations for development have
NEEDS_VECTORS = pytest.mark.skipif(folder() is None, reason="the extra `semantic` is not installed")
QUESTIONS = [*questions_in(OWN), *questions_in(UNSEEN)]
NOT_TUNED_ON = [each for each in questions_in(FRESH) if each["split"] == "b"]


def names(text, **options):
    return [match.entry.name for match in shipped_index().search(text, **options).data]


def test_the_questions_name_existing_operations():
    questions, known = [*QUESTIONS, *questions_in(FRESH)], {entry.name for entry in entries_of(CATALOG)}

    assert [each for each in questions if not {*each["gold"]} <= known] == []
    assert [each for each in questions if each["gold"] and each["best"] not in each["gold"]] == []


#: what the search compares, the index, and the least shares: of questions whose first and whose first five operations
#: have a right one; the same of those not tuned on
BY_MEANING = pytest.param(shipped_index, 0.88, 0.96, 0.78, 0.93, marks=NEEDS_VECTORS, id="meanings")
BY_WORDS = pytest.param(index_of_words, 0.82, 0.95, 0.76, 0.93, id="words")


@pytest.mark.parametrize(("index", "first", "five", "fresh_first", "fresh_five"), [BY_MEANING, BY_WORDS])
def test_most_questions_find_their_operation_first_and_nearly_all_among_five(
    index, first, five, fresh_first, fresh_five
):
    found, not_tuned_on = evaluated(searching(index()), QUESTIONS), evaluated(searching(index()), NOT_TUNED_ON)

    assert found.hits(1) >= first, found.misses
    assert found.hits(5) >= five, found.misses
    assert not_tuned_on.hits(1) >= fresh_first, not_tuned_on
    assert not_tuned_on.hits(5) >= fresh_five, not_tuned_on
    assert not_tuned_on.nothing >= 0.6, not_tuned_on


@pytest.mark.parametrize("index", [pytest.param(shipped_index, marks=NEEDS_VECTORS), index_of_words])
def test_most_tasks_that_no_operation_does_are_recognised_and_few_others_refused(index):
    found = evaluated(searching(index()), [*QUESTIONS, *questions_in(NOTHING)])

    assert found.nothing >= 0.5, found.misses
    assert found.refused <= 0.03, found.misses


def test_results_have_at_most_five_hundred_tokens():
    longest = max(
        sum(
            len(f"{match.entry.name} {signature_of(match.entry)}")
            for match in shipped_index().search(each["question"]).data
        )
        for each in QUESTIONS
    )

    assert longest / CHARACTERS_OF_A_TOKEN <= 500


@NEEDS_VECTORS
@pytest.mark.parametrize(
    ("text", "operation"),
    [
        ("list all incidents", "incident-management.incidents.list"),
        ("incidents", "incident-management.incidents.list"),
        ("tasks assigned to me", "work-management.tasks.list"),
        ("who is on call", "incident-management.schedules.list"),
        ("show channels", "team-chat.channels.list"),
        ("show channel C024BE91L", "team-chat.channels.get"),
        ("files on task 4410", "work-management.attachments.list"),
    ],
)
def test_an_entity_ranks_before_entities_that_belong_to_it(text, operation):
    assert names(text)[0] == operation


def test_a_text_is_read_to_its_thousandth_character():
    assert names("list all tickets" + " " * 1000 + "of GitHub") == names("list all tickets")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("list Zendesk users", "support-desk"),
        ("list HubSpot contacts", "crm-records"),
        ("list salesforce contacts", "crm-query"),
        ("list notion users", "workspace-notes"),
        ("slack users", "team-chat"),
        ("Asana users", "work-management"),
        ("incident.io users", "incident-management"),
    ],
)
def test_the_name_of_an_application_selects_its_kind(text, kind):
    assert names(text)[0].startswith(f"{kind}.")


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("close ticket 12", "update"),
        ("file a ticket", "create"),
        ("delete the task", "delete"),
        ("download the article attachment", "download"),
        ("find a deal called Initech", "api_search"),
    ],
)
def test_verbs_choose_the_action(text, action):
    assert shipped_index().search(text).data[0].entry.action_id == action


def test_of_equal_matches_connected_kinds_come_first():
    by_default = names("find a contact by name")[0].split(".")[0]
    other = {"crm-query": "crm-records", "crm-records": "crm-query"}[by_default]

    assert names("find a contact by name", connected={other})[0].split(".")[0] == other
    assert names("find a hubspot contact by name", connected={"crm-query"})[0].split(".")[0] == "crm-records"


@pytest.mark.parametrize(
    ("text", "connected", "operation"),
    [
        ("close the ticket", {"freshdesk"}, "freshdesk.tickets.update"),
        ("list issues", {"linear"}, "linear.issues.list"),
        ("list abandoned checkouts of the shop", {"support-desk"}, "shopify.abandoned_checkouts.list"),
    ],
)
def test_a_connected_kind_comes_first_if_it_has_an_operation_for_the_task(text, connected, operation):
    assert names(text, connected=connected)[0] == operation


@NEEDS_VECTORS
@pytest.mark.parametrize(
    ("text", "operation"),
    [
        (
            "Our lawyer insists that everything is in order by Friday, so please show me the open tickets of Initech "
            "before the cleaning crew arrives",
            "support-desk.tickets.list",
        ),
        (
            "Hi! Hope your weekend was good. Who is on call tonight? Thanks a lot, and tell me when you are done",
            "incident-management.schedules.list",
        ),
    ],
)
def test_a_long_request_with_courtesies_is_found(text, operation):
    assert names(text)[0] == operation


@pytest.mark.parametrize("text", ["Duplicate a page in Notion", "Lock the Asana task", "Translate the Zendesk ticket"])
def test_a_rare_verb_without_an_operation_finds_nothing(text):
    assert names(text) == []


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("create an incident", {"kind": "incident-management"}, NO_INCIDENTS),
        ("Create an incident in incident.io", {}, NO_INCIDENTS),
        ("delete a macro", {"kind": "support-desk"}, f"{NO_DELETE} macros; macros: get, list"),
        ("delete a brand", {"kind": "support-desk"}, f"{NO_DELETE} brands; brands: list, get"),
        ("What is the weather in Oslo?", {}, "No matching operations. Try different words."),
    ],
)  # fmt: skip
def test_the_message_for_a_task_without_an_operation_says_what_is_missing(text, options, message):
    found = shipped_index().search(text, **options)

    assert (list(found.data), found.message) == ([], message)


def test_the_closest_operations_are_returned_for_a_task_without_an_operation():
    closest = shipped_index().search("create an incident", kind="incident-management").closest

    assert closest[0].entry.entity_id == "incidents"


@NEEDS_VECTORS
@pytest.mark.parametrize(
    ("text", "operation"),
    [
        ("zendesk tickets older than 30 days", "support-desk.tickets.context_store_search"),
        ("zendesk tickets created today", "support-desk.tickets.context_store_search"),
        ("unresolved zendesk tickets of customer 551", "support-desk.tickets.context_store_search"),
        ("incidents with severity major opened since June", "incident-management.incidents.context_store_search"),
        ("hubspot deals that close before July", "crm-records.deals.api_search"),
    ],
)
def test_conditions_find_the_operation_that_can_filter(text, operation):
    assert names(text)[0] == operation


@pytest.mark.parametrize(
    ("text", "operation"),
    [
        ("members of team 88012 in asana", "work-management.team_users.list"),
        ("teams of user 551 in asana", "work-management.user_teams.list"),
        ("comments on zendesk ticket 4410", "support-desk.ticket_comments.list"),
        ("topic and purpose of slack channel C0331", "team-chat.channels.get"),
    ],
)
def test_an_id_selects_operations_that_take_it(text, operation):
    assert names(text)[0] == operation


@NEEDS_VECTORS
@pytest.mark.parametrize(
    ("text", "operation"),
    [
        (
            "The office in Hamburg moved last week, and because nobody told them, the customer wrote twice; "
            "please close zendesk ticket 61200 before Lena is back on Monday.",
            "support-desk.tickets.update",
        ),
        (
            "For the review with the auditors on 14 March, Ravi needs all incidents, so that nobody has to ask again.",
            "incident-management.incidents.list",
        ),
    ],
)
def test_a_long_request_is_found_by_the_clause_that_asks(text, operation):
    assert names(text)[0] == operation


@pytest.mark.parametrize(
    "text",
    ["who deleted a ticket", "tasks that were closed last week in asana", "messages that Tom removed from the channel"],
)
def test_a_write_is_not_first_if_no_verb_requests_it(text):
    assert shipped_index().search(text).data[0].entry.effect is Effect.READ


def test_results_are_restricted_to_the_kind_and_the_effect():
    found = shipped_index().search("ticket", kind="support-desk", effect=Effect.WRITE, limit=50).data

    assert {(match.entry.kind.name, match.entry.effect) for match in found} == {("support-desk", Effect.WRITE)}


@pytest.mark.parametrize("text", ["", "the of and", "…", "zzzzqqq xkcdx"])
def test_a_text_without_known_words_finds_nothing(text):
    assert names(text) == []


def test_results_are_sorted_by_score():
    scores = [match.score for match in shipped_index().search("reply to a customer", limit=20).data]

    assert scores == sorted(scores, reverse=True)
    assert len(scores) == 20


@pytest.mark.parametrize(
    "text", ["@" * 10_000, "a@" * 5_000, "'" * 10_000, "q1w2 " * 2_000, "with " * 2_000, "\x00é" * 5_000]
)
def test_every_text_is_searched_fast(text):
    index = shipped_index()

    with seconds_at_most(LIMIT):
        index.search(text)


def test_the_message_for_restricted_kinds_names_the_kind():
    found = shipped_index().search("water the plants", among={"team-chat"})

    assert (list(found.data), found.message.split(" for this")[0]) == ([], "Slack: team-chat has no operation")
