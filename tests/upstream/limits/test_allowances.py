"""What each application's documented headers say of what is left, and what follows before it refuses."""

import pytest

from gateway.kinds.failures import Allowance
from gateway.upstream.allowances import Reading, readings
from gateway.upstream.limits.budget import Budget
from tests.harness.catalog import shipped_catalog

CATALOG = shipped_catalog()
NOW = 1_785_173_190.0
PLENTY = {"x-rate-limit": "700", "x-rate-limit-remaining": "699"}
NEWER = {"ratelimit-limit": "700", "ratelimit-reset": "41"}
HUBSPOT = {"x-hubspot-ratelimit-max": "100", "x-hubspot-ratelimit-interval-milliseconds": "10000"}
DAILY = {"x-hubspot-ratelimit-daily": "250000", "x-hubspot-ratelimit-remaining": "99"}
# The limit is a list, of which the first number counts.
INCIDENT = {"x-ratelimit-limit": "60, 1200;window=60, 60;window=60", "x-ratelimit-reset": "1785173199"}
# The time is in milliseconds.
LINEAR = {"x-ratelimit-requests-limit": "2500", "x-ratelimit-requests-reset": "1785173220000"}
COMPLEXITY = {
    "x-ratelimit-complexity-limit": "250000",
    "x-ratelimit-complexity-remaining": "0",
    "x-ratelimit-complexity-reset": "1785173280000",
}


@pytest.mark.parametrize(
    ("kind", "headers", "is_throttled", "paused_for"),
    [
        ("support-desk", {**PLENTY, **NEWER, "ratelimit-remaining": "699"}, False, 0),
        ("support-desk", {"x-rate-limit": "700", "x-rate-limit-remaining": "20", **NEWER}, True, 0),
        ("support-desk", {**NEWER, "ratelimit-remaining": "0"}, True, 41),
        (
            *("support-desk", {**PLENTY, "zendesk-ratelimit-tickets-index": "total=100; remaining=0; resets=41"}),
            *(True, 0),
        ),
        ("crm-records", {**HUBSPOT, "x-hubspot-ratelimit-remaining": "99"}, False, 0),
        ("crm-records", {**HUBSPOT, "x-hubspot-ratelimit-remaining": "5"}, True, 0),
        ("crm-records", {**HUBSPOT, **DAILY, "x-hubspot-ratelimit-daily-remaining": "0"}, True, 3600),
        ("crm-query", {"sforce-limit-info": "api-usage=18/100000"}, False, 0),
        ("crm-query", {"sforce-limit-info": "api-usage=99990/100000"}, True, 0),
        ("crm-query", {"sforce-limit-info": "api-usage=100000/100000"}, True, 3600),
        ("incident-management", {**INCIDENT, "x-ratelimit-remaining": "58", "x-ratelimit-used": "2"}, False, 0),
        ("incident-management", {**INCIDENT, "x-ratelimit-remaining": "2", "x-ratelimit-used": "58"}, True, 0),
        ("incident-management", {**INCIDENT, "x-ratelimit-remaining": "0"}, True, 9),
        ("shopify", {"x-shopify-shop-api-call-limit": "8/40"}, False, 0),
        ("shopify", {"x-shopify-shop-api-call-limit": "39/40"}, True, 0),
        ("shopify", {"x-shopify-shop-api-call-limit": "40/40"}, True, 2),
        ("linear", {**LINEAR, "x-ratelimit-requests-remaining": "0"}, True, 30),
        ("linear", {**LINEAR, **COMPLEXITY, "x-ratelimit-requests-remaining": "2000"}, True, 90),
    ],
)
def test_headers_slow_an_account_down_before_the_application_refuses(kind, headers, is_throttled, paused_for):
    budget = Budget.of(CATALOG.kind(kind).spec.rate_limit)

    is_told, is_shared = budget.header_names.are_in(headers), budget.observe(0, lambda: NOW, headers)

    assert (is_told, is_shared, budget.is_throttled(1)) == (True, is_throttled, is_throttled)
    assert budget.paused_until == paused_for


def test_a_list_of_limits_counts_by_its_first():
    budget = Budget.of(CATALOG.kind("incident-management").spec.rate_limit)

    budget.observe(0, lambda: NOW, {**INCIDENT, "x-ratelimit-remaining": "58"})

    assert budget.requests == 60


def test_the_allowance_of_a_day_does_not_change_the_rate():
    budget = Budget.of(CATALOG.kind("crm-records").spec.rate_limit)

    budget.observe(0, lambda: NOW, {**HUBSPOT, **DAILY, "x-hubspot-ratelimit-daily-remaining": "249000"})

    assert budget.requests == 100


@pytest.mark.parametrize("kind", ["support-desk", "crm-query", "team-chat"])
def test_an_answer_that_says_nothing_of_limits_is_reported_at_a_glance(kind):
    budget = Budget.of(CATALOG.kind(kind).spec.rate_limit)

    assert not budget.header_names.are_in({"content-type": "application/json", "x-request-id": "r-1"})


@pytest.mark.parametrize("text", ["", "api-usage", "api-usage=", "api-usage=x/y", f"api-usage={'9' * 5000}/1"])
def test_what_cannot_be_read_says_nothing(text):
    allowance = Allowance(header="sforce-limit-info", members={"used": "api-usage"})

    assert list(readings(allowance, {"sforce-limit-info": text})) == [Reading()]
