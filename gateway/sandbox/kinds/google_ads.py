"""Google Ads: rows of queries, chosen by the resource after FROM, and changes by lists of operations."""

import re
from collections.abc import Mapping
from functools import cached_property, partial
from typing import Any, ClassVar

from gateway.kinds.catalog import Operation
from gateway.sandbox.calls import Call, Handler, Record, Refusal, Reply
from gateway.sandbox.records import FieldType
from gateway.sandbox.spec_application import SpecApplication
from gateway.sandbox.store import Row

_SEARCH = "/customers/{customer_id}/googleAds:search"
_CUSTOMER = 1234567890
#: resource of a query → entity, and the collection in the names of its records
_RESOURCES: Mapping[str, tuple[str, str]] = {
    "customer": ("accounts", ""),
    "campaign": ("campaigns", "campaigns"),
    "campaign_budget": ("campaign_budgets", "campaignBudgets"),
    "ad_group": ("ad_groups", "adGroups"),
    "ad_group_ad": ("ad_group_ads", "adGroupAds"),
    "ad_group_criterion": ("keywords", "adGroupCriteria"),
    "campaign_label": ("campaign_labels", "campaignLabels"),
    "ad_group_label": ("ad_group_labels", "adGroupLabels"),
    "ad_group_ad_label": ("ad_group_ad_labels", "adGroupAdLabels"),
    "label": ("labels", "labels"),
}
_COLLECTIONS = dict(_RESOURCES.values())


class GoogleAds(SpecApplication):
    """Each row has its resource as a member: `{"campaign": {…}}`."""

    counts: ClassVar = {"accessible_customers": 2, "accounts": 1}

    def fields_of(self, table: str) -> Mapping[str, FieldType]:
        """The members of a resource."""
        if table == "accessible_customers":
            return super().fields_of(table)
        return {"id": "string", "resourceName": "string", "name": "string", "status": {"enum": ["ENABLED", "PAUSED"]}}

    def id_member_of(self, table: str) -> str:
        return "customer_id" if table == "accessible_customers" else "resourceName"

    def usual_id(self, table: str, number: int) -> str:
        if table == "accessible_customers":
            return str(_CUSTOMER + number - 1)
        account = f"customers/{_CUSTOMER}"
        return f"{account}/{_COLLECTIONS[table]}/{number}" if _COLLECTIONS.get(table) else account

    @cached_property
    def _example_ids(self) -> dict[str, int | str]:
        """None: the examples name the account in the path, and records in the body."""
        return {}

    def handlers(self) -> dict[str, Handler]:
        found: dict[str, Handler] = {
            f"POST {_SEARCH}": self.search,
            "GET /customers:listAccessibleCustomers": self.list_customers,
        }
        for table, collection in _COLLECTIONS.items():
            found[f"POST /customers/{{customer_id}}/{collection}:mutate"] = partial(self.mutate, table)
        return found

    def list_customers(self, call: Call) -> Reply:
        """The names of the accounts."""
        return Reply({"resourceNames": [f"customers/{row.id}" for row in self.store.table("accessible_customers")]})

    def search(self, call: Call) -> Reply:
        """The rows of the resource after FROM; a response without rows has no list."""
        query = str(call.body.get("query", ""))
        named = re.search(r"\bFROM\s+(\w+)", query, flags=re.IGNORECASE)
        table, _ = _RESOURCES.get(named[1] if named else "", ("", ""))
        if not table:
            raise Refusal(400, message=f"Error in query: unexpected input in {query}", field="query")
        listing = self.kind.operation("reports", "list")
        reply = self.listed(listing, list(self.store.table(table)), call)
        if not reply.body["results"]:
            del reply.body["results"]
        return reply

    def mutate(self, table: str, call: Call) -> Reply:
        """The names of the resources that the operations created, changed or removed."""
        return Reply(
            {"results": [{"resourceName": self._done(table, each, call.now)} for each in call.body["operations"]]}
        )

    def _done(self, table: str, operation: Mapping[str, Any], now: float) -> str:
        if "create" in operation:
            return str(self.add_row(table, dict(operation["create"]), now).id)
        if "remove" in operation:
            row = self.require_row(table, operation["remove"])
            self.store.table(table).remove(row.id)
            return str(row.id)
        members: Record = {name: value for name, value in operation["update"].items() if name != "resourceName"}
        row = self.require_row(table, operation["update"]["resourceName"])
        self.change(row, members, now)
        return str(row.id)

    def shown(self, operation: Operation, row: Row, call: Call) -> Record:
        """The row of a query: the record as the member that has the name of its resource."""
        if operation.entity_id == "accessible_customers":
            return row.record
        collection = "/".join(row.id.split("/")[2:3])
        resource = next(name for name, (_, each) in _RESOURCES.items() if each == collection)
        return {re.sub(r"_(\w)", lambda found: found[1].upper(), resource): row.record}
