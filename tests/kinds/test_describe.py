import jsonschema_rs
import msgspec
import pytest

from gateway.context_store.fields import FieldType
from gateway.context_store.search.parse import DEFAULT_LIMIT, MAX_LIMIT, PARAMS, parse
from gateway.contract.kinds import KindSummaryView, KindView
from gateway.kinds.describe import kind_summary, kind_view
from gateway.kinds.search_operators import Operator
from gateway.kinds.search_schema import search_params_schema
from tests.harness.catalog import shipped_catalog

CATALOG = shipped_catalog()


@pytest.mark.parametrize("kind", list(CATALOG), ids=lambda kind: kind.name)
def test_the_discovery_of_a_kind_has_the_members_of_the_contract_and_no_others(kind):
    summary, view = kind_summary(kind), kind_view(kind)

    assert msgspec.to_builtins(msgspec.convert(summary, KindSummaryView)) == summary
    assert msgspec.to_builtins(msgspec.convert(view, KindView)) == view


def test_the_schema_of_searches_has_every_operator_and_the_limits():
    search = CATALOG.kind("support-desk").entity("tickets").search
    schema = search_params_schema(search)

    assert set(schema["$defs"]["filter"]["properties"]) == set(Operator)
    assert set(schema["properties"]) == set(PARAMS)
    assert schema["properties"]["limit"]["maximum"] == MAX_LIMIT
    assert schema["properties"]["limit"]["default"] == DEFAULT_LIMIT


@pytest.mark.parametrize(
    ("params", "is_valid"),
    [
        ({"query": {"filter": {"eq": {"status": "open"}}, "sort": [{"updated_at": "desc"}]}}, True),
        ({"query": {"filter": {"or": [{"in": {"id": [1, 2]}}, {"not": {"like": {"subject": "fire"}}}]}}}, True),
        ({"query": {}, "fields": ["id", ["via", "channel"]], "limit": 5}, True),
        ({"query": {"filter": {"equals": {"status": "open"}}}}, False),
        ({"query": {"filter": {"and": {}}}}, False),
        ({"limit": 5}, False),
    ],
)
def test_the_schema_of_searches_accepts_the_params_that_the_search_accepts(params, is_valid):
    search = CATALOG.kind("support-desk").entity("tickets").search
    validator = jsonschema_rs.Draft202012Validator(search_params_schema(search))

    assert validator.is_valid(params) is is_valid
    if is_valid:
        parse(params, {name: FieldType(type_) for name, type_ in search.fields.items()})


@pytest.mark.parametrize("kind", list(CATALOG), ids=lambda kind: kind.name)
def test_every_schema_of_discovery_is_valid(kind):
    for entity in kind_view(kind)["entities"].values():
        for action in entity["actions"].values():
            jsonschema_rs.Draft202012Validator(action["params"])


@pytest.mark.parametrize("kind", list(CATALOG), ids=lambda kind: kind.name)
def test_every_shipped_operation_has_phrases_of_users(kind):
    without = {str(operation) for operation in kind.operations.values() if not operation.action.phrases}
    without |= {entity_id for entity_id, entity in kind.spec.entities.items() if not entity.synonyms}

    assert without == set()
    assert kind.spec.synonyms
