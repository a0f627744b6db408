"""Bulk queries and writes of the CRM by query: upload, close, status and CSV results, simulated from the spec."""

import pytest

from gateway.errors import UpstreamRejected


@pytest.fixture
def crm(connect):
    return connect("crm-query")


async def test_a_bulk_query_reads_every_record_page_by_page(crm):
    found = await crm.execute("bulk_queries", "run", {"query": "SELECT Id, Name FROM Account"})

    records = found.decoded()
    assert len(records) == len({record["Id"] for record in records}) > 2000
    assert records[0].keys() == {"Id", "Name"}


async def test_an_invalid_bulk_query_is_refused(crm):
    with pytest.raises(UpstreamRejected):
        await crm.execute("bulk_queries", "run", {"query": "SELECT"})


async def test_bulk_writes_report_on_each_record(crm):
    accounts = [{"Name": "Analytical Engines"}, {"Name": 'Difference, "Works"'}]
    made = await _written(crm, "insert", accounts)
    first = made["results"][0]["id"]
    changed = await _written(crm, "update", [{"Id": first, "Name": "Engines"}, {"Id": "001000000000000AAA"}])
    again = await _written(crm, "upsert", [{"Name": "Engines", "Industry": "Computing"}], externalIdFieldName="Name")
    known = (await crm.execute("accounts", "get", {"id": first})).decoded()
    deleted = await _written(crm, "delete", [{"Id": first}])

    assert made["message"] == "2 of 2 records written"
    assert [each["record"]["Name"] for each in made["results"]] == [each["Name"] for each in accounts]
    assert [(each["id"], each["success"]) for each in changed["results"]] == [(first, True), (None, False)]
    assert "does not exist" in changed["results"][1]["error"]
    assert (again["results"][0]["id"], known["Name"], known["Industry"]) == (first, "Engines", "Computing")
    assert deleted["succeeded"] == 1


async def _written(crm, operation, records, **params):
    call = {"object": "Account", "operation": operation, "records": records, **params}
    return (await crm.execute("bulk_writes", "run", call)).decoded()
