"""Responses of every shape: maps, wrapped records, nothing at all, and failures that come with a 200."""

import msgspec
import pytest

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamInvalidResponse,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
    UpstreamTimeout,
)
from gateway.kinds.failures import Failure
from gateway.upstream.failures import failure
from gateway.upstream.responses import UpstreamResponse, read
from tests.kinds.small_kind import small_operation


def answered(document: object, status: int = 200) -> UpstreamResponse:
    return UpstreamResponse(status, {}, b"" if document is None else msgspec.json.encode(document))


@pytest.mark.parametrize(
    ("action", "document", "records"),
    [
        (
            {"records": "prices", "map_key": "currency"},
            {"prices": {"eur": {"a": 1}, "usd": 2}},
            [{"currency": "eur", "a": 1}, {"currency": "usd", "value": 2}],
        ),
        (
            {"records": "data.issues.edges", "unwrap": "node"},
            {"data": {"issues": {"edges": [{"node": {"id": 1}}, {"node": {"id": 2}}]}}},
            [{"id": 1}, {"id": 2}],
        ),
        ({"records": "0.hits"}, [{"hits": [{"id": 1}]}], [{"id": 1}]),
        ({"records": "results.1.items"}, {"results": [{}, {"items": [{"id": 1}]}]}, [{"id": 1}]),
        ({"records": "$", "map_key": "id"}, {"a": {"x": 1}}, [{"id": "a", "x": 1}]),
        ({"records": "data", "single": True}, {"data": {"series": [1, 2]}}, [{"series": [1, 2]}]),
        ({"records": "$", "single": True}, {"series": [1, 2]}, [{"series": [1, 2]}]),
        ({"records": "data", "single": True}, {"data": [{"id": 1}]}, [{"id": 1}]),
        (
            {"records": "boards.*.page.items"},
            {"boards": [{"page": {"items": [1, 2]}}, {"page": {"items": []}}]},
            [1, 2],
        ),
        ({"records": "boards.*.page.items"}, {"boards": []}, []),
        ({"records": "boards.*.page.items"}, {"boards": None}, []),
        ({"records": "*"}, {"people": [1], "addresses": [2]}, [1, 2]),
        ({"records": "*"}, [[1], [2]], [1, 2]),
        ({"records": "a.*.b.*"}, {"a": {"x": {"b": [[1], [2]]}, "y": {"b": {"z": [3]}}}}, [1, 2, 3]),
        ({"records": "a.*", "unwrap": "node"}, {"a": [[{"node": 1}], [{"node": 2}]]}, [1, 2]),
    ],
)
def test_records_lie_where_the_spec_says(action, document, records):
    assert read(small_operation(action), answered(document)).decoded() == records


COLUMNS = {"records": "rows", "columns": {"names": "columns.*.name", "param": "columns"}}
NAMED = [{"name": "A"}, {"name": "B"}]


@pytest.mark.parametrize(
    ("document", "params", "records"),
    [
        ({"columns": NAMED, "rows": [["1", None], ["2", "x"]]}, {}, [{"A": "1", "B": None}, {"A": "2", "B": "x"}]),
        ({"columns": NAMED, "rows": []}, {}, []),
        ({"columns": NAMED, "rows": None}, {}, []),
        ({"rows": [["1", "2"]]}, {"columns": ["A", "B"]}, [{"A": "1", "B": "2"}]),
        ({"columns": NAMED, "rows": [["1", "2"]]}, {"columns": ["X", "Y"]}, [{"A": "1", "B": "2"}]),
        ({"rows": [[1, 2, 3, 4]]}, {"columns": ["A", "A_2", "A", "A"]}, [{"A": 1, "A_2": 2, "A_3": 3, "A_4": 4}]),
    ],
)
def test_rows_of_values_get_the_names_of_their_columns(document, params, records):
    assert read(small_operation(COLUMNS), answered(document), params).decoded() == records


def test_a_row_at_a_position_is_a_record_with_the_names_of_the_columns():
    operation = small_operation({"record": "rows.0", "columns": {"names": "columns.*.name"}})

    assert read(operation, answered({"columns": NAMED, "rows": [["1", "2"]]})).decoded() == {"A": "1", "B": "2"}
    with pytest.raises(UpstreamNotFound):
        read(operation, answered({"columns": NAMED, "rows": []}))


def test_rows_that_are_null_are_named_as_missing():
    page = read(small_operation(COLUMNS), answered({"columns": NAMED, "rows": [None, ["1", None]]}))

    assert page.decoded() == [{"A": "1", "B": None}]
    assert "null for 1 of 2 records" in page.incomplete


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"columns": NAMED, "rows": [["1"]]}, "a value for each of 2 columns"),
        ({"columns": NAMED, "rows": [["1", "2", "3"]]}, "a value for each of 2 columns"),
        ({"columns": NAMED, "rows": [{"A": 1}]}, "a value for each of 2 columns"),
        ({"rows": [["1"]]}, "does not name the columns"),
        ({"columns": [{"name": 1}], "rows": [["1"]]}, "does not name the columns"),
        ({"columns": "A", "rows": [["1"]]}, "does not name the columns"),
    ],
)
def test_rows_without_a_name_for_each_value_are_refused(document, said):
    with pytest.raises(UpstreamInvalidResponse, match=said):
        read(small_operation(COLUMNS), answered(document))


def test_a_read_on_which_the_application_still_works_is_no_empty_list_and_no_missing_record():
    accepted = answered({"code": "333334", "id": "h"}, 202)

    page = read(small_operation(COLUMNS), accepted)

    assert page.decoded() == []
    assert "still works on it" in page.incomplete
    with pytest.raises(UpstreamTimeout, match="still works on it"):
        read(small_operation({"record": "rows.0"}), accepted)


@pytest.mark.parametrize("inner", [None, {}, {"items": None}])
def test_a_list_that_is_missing_among_several_makes_the_whole_incomplete(inner):
    page = read(small_operation({"records": "boards.*.items"}), answered({"boards": [{"items": [1]}, inner]}))

    assert page.decoded() == [1]
    assert "null for 1 of 2 records" in page.incomplete


@pytest.mark.parametrize("boards", ["no", 7, [{"items": {}}], [{"items": "no"}]])
def test_what_is_no_list_among_several_is_refused(boards):
    with pytest.raises(UpstreamInvalidResponse):
        read(small_operation({"records": "boards.*.items"}), answered({"boards": boards}))


@pytest.mark.parametrize(("action", "came"), [({"records": "things"}, []), ({"record": "thing"}, None)])
def test_no_content_is_an_empty_list_or_no_record(action, came):
    assert read(small_operation(action), answered(None, 204)).decoded() == came


@pytest.mark.parametrize("document", [{"data": []}, {}, None])
def test_a_record_at_a_position_that_the_list_lacks_is_not_found(document):
    with pytest.raises(UpstreamNotFound, match=r"things\.act: the application has no such record"):
        read(small_operation({"record": "data.0"}), answered(document))
    with pytest.raises(UpstreamNotFound):
        read(small_operation({"record": "data.0.thing"}), answered(document))


def test_a_header_has_the_id_of_a_new_record():
    operation = small_operation({"request": "POST /things", "effect": "write", "id_header": "X-Id"})
    created = UpstreamResponse(201, {"x-id": "urn:li:thing:7"}, b"")

    assert read(operation, created).decoded() == {"id": "urn:li:thing:7"}
    assert read(operation, answered(None, 204)).decoded() is None


def test_a_write_without_a_record_at_its_position_is_done():
    operation = small_operation({"request": "POST /things", "effect": "write", "record": "data.0"})

    assert read(operation, answered({"data": []})).decoded() is None


@pytest.mark.parametrize("document", [{"data": 5}, {"data": "x"}, {}])
def test_a_value_that_is_no_object_is_no_list_of_one(document):
    with pytest.raises(UpstreamInvalidResponse, match="has no list of records"):
        read(small_operation({"records": "data", "single": True}), answered(document))


@pytest.mark.parametrize(
    ("place", "data"),
    [
        ({"record": "data.issue"}, {"issue": None}),
        ({"record": "data.team.issue"}, {"team": None}),
        ({"records": "data.team.issues.nodes"}, {"team": None}),
    ],
)
def test_graphql_answers_null_for_a_record_that_is_not_there(place, data):
    operation = small_operation({"request": "POST /graphql", "graphql": "query { a }", **place})

    with pytest.raises(UpstreamNotFound):
        read(operation, answered({"data": data}))


@pytest.mark.parametrize("status", [200, 201, 202])
def test_a_text_may_make_a_success_a_failure(status):
    spec = Failure.model_validate({"when_equal": {"data.0.status": "error"}, "code": ["data.0.code"]})

    found = failure(spec, answered({"data": [{"status": "error", "code": "MISSING"}]}, status))

    assert type(found) is UpstreamRejected
    assert found.upstream.code == "MISSING"


@pytest.mark.parametrize(
    "document",
    [{"data": [{"status": "success"}]}, {"data": []}, {"data": {}}, {}, [], None, {"data": [{"status": ["error"]}]}],
)
def test_another_text_or_none_is_a_success(document):
    spec = Failure.model_validate({"when_equal": {"data.0.status": "error"}})

    assert failure(spec, answered(document)) is None


@pytest.mark.parametrize(("code", "is_failure"), [(0, False), (40002, True)])
def test_the_code_zero_of_a_success_is_no_failure(code, is_failure):
    spec = Failure.model_validate({"when_present": ["code"], "code": ["code"], "message": ["message"]})

    found = failure(spec, answered({"code": code, "message": "said", "data": {}}))

    assert (found is not None) is is_failure


GRAPHQL = Failure.model_validate(
    {
        "when_present": ["errors"],
        "code": ["errors.0.extensions.code"],
        "message": ["errors.0.message"],
        "codes": {"upstream_rate_limited": ["RATELIMITED"], "reauthorization_required": ["AUTHENTICATION_ERROR"]},
    }
)


@pytest.mark.parametrize(("errors", "is_failure"), [([], False), ([{"field": ["title"], "message": "is empty"}], True)])
def test_an_error_may_lie_within_what_a_mutation_returns(errors, is_failure):
    spec = Failure.model_validate(
        {"when_present": ["errors", "data.*.userErrors"], "details": ["data.*.userErrors.*.message"]}
    )

    found = failure(spec, answered({"data": {"thingCreate": {"userErrors": errors, "thing": {"id": 1}}}}))

    assert (found is not None and "is empty" in found.detail) is is_failure


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("RATELIMITED", UpstreamRateLimited),
        ("AUTHENTICATION_ERROR", ReauthorizationRequired),
        ("INVALID_INPUT", UpstreamRejected),
    ],
)
def test_an_error_in_a_200_is_what_its_code_means(code, error):
    said = {"data": {"x": None}, "errors": [{"message": "no such team", "extensions": {"code": code}}]}

    found = failure(GRAPHQL, answered(said))

    assert type(found) is error
    assert "no such team" in found.detail


@pytest.mark.parametrize("errors", [None, [], {}, False, ""])
def test_a_member_that_says_that_nothing_is_wrong_is_no_error(errors):
    assert failure(GRAPHQL, answered({"data": {}, "errors": errors})) is None
    assert failure(GRAPHQL, answered({"data": {}})) is None


@pytest.mark.parametrize("body", [b"", b"  ", b"[1]", b"not json"])
def test_what_is_no_object_hides_no_failure(body):
    assert failure(GRAPHQL, UpstreamResponse(200, {}, body)) is None
