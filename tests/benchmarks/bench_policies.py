"""Decisions by 1,000 policies, beside Cedar over the whole set."""

import json
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from uuid import UUID

import cedarpy

from gateway.access.policy.decision import DecidedSet
from gateway.access.policy.language import statements_of
from gateway.access.policy.model import PolicyCall, Target
from gateway.contract.policies import Surface
from gateway.kinds.loading import load_catalog
from gateway.upstream.prepared import prepare
from tests.benchmarks.report import Figure, Report

#: statements of the organization, and clients that they are about
STATEMENTS, CLIENTS = 1000, 100
#: microseconds of the median decision
P50_US = 50.0
NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
FORBID = """
    forbid(principal == Client::"{client}", action in Action::"idempotent", resource)
    when {{ context.params has ticket_id && context.params.ticket_id == {number} }};
"""


async def run(quick: bool) -> Report:
    """The median of decisions that read a param, and of those that read none."""
    forbids = [FORBID.format(client=UUID(int=number % CLIENTS), number=number) for number in range(1, STATEMENTS)]
    text = "permit(principal, action, resource);" + "".join(forbids)
    decided, whole = DecidedSet(statements_of("main", text)), cedarpy.PolicySet.from_str(text)
    reading, plain = _call(5), _call(CLIENTS)
    request = {**decided.about(reading).request, "context": {"params": {"ticket_id": 0}}}
    entities = cedarpy.Entities.from_json_str(json.dumps(decided.about(reading).entities))
    rounds = 200 if quick else 5000
    ours = _median(lambda: decided.decide(reading, NOW), rounds)
    of_no_param = _median(lambda: decided.decide(plain, NOW), rounds)
    of_cedar = _median(lambda: cedarpy.is_authorized(request, whole, entities), rounds // 20)
    report = Report("Policies")
    report.figures += [
        Figure("p50 of a decision that reads a param, against its aim", ours, P50_US, "µs", at_most=1),
        Figure("p50 of a decision that reads no param, against its aim", of_no_param, P50_US, "µs", at_most=1),
        Figure("p50 of a decision that reads a param, against Cedar over the whole set", ours, of_cedar, "µs"),
    ]
    report.notes.append(
        f"{STATEMENTS} statements of an organization, of which {STATEMENTS // CLIENTS} are about the client of the "
        "call and have a condition."
    )
    return report


def _call(client: int) -> PolicyCall:
    operation = load_catalog().kind("support-desk").operation("tickets", "update")
    prepared = prepare(operation, {"ticket_id": 0, "ticket": {"status": "open"}})
    return PolicyCall(
        client_id=UUID(int=client),
        target=Target(connector_id=UUID(int=1), name="Desk", workspace_name="emea", kind="support-desk"),
        entity="tickets",
        action="update",
        effect=prepared.effect,
        surface=Surface.HTTP,
        params=prepared.params,
        operation=operation,
    )


def _median(decide: Callable[[], object], rounds: int) -> float:
    """Microseconds of the median round, after one that is not counted."""
    decide()
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        decide()
        times.append((time.perf_counter() - started) * 1e6)
    return statistics.median(times)
