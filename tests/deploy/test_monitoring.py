"""Alerts and dashboard: they ask for metrics that there are, and every alert has its line of advice."""

import json
import re
from pathlib import Path

import pytest
import yaml

from gateway.foundation.db.pool import Database
from gateway.foundation.telemetry import metrics
from gateway.foundation.telemetry.metrics import Counter, Histogram
from gateway.run.monitoring.prometheus import PrometheusExporter
from tests.harness.catalog import shipped_catalog

DEPLOY = Path(__file__).parents[2] / "deploy"
ALERTS = yaml.safe_load((DEPLOY / "monitoring" / "alerts.yaml").read_text("utf-8"))["groups"][0]["rules"]
DASHBOARD = json.loads((DEPLOY / "monitoring" / "dashboard.json").read_text("utf-8"))
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
EXPRESSIONS = [
    *(pytest.param(rule["expr"], id=rule["alert"]) for rule in ALERTS),
    *(pytest.param(target["expr"], id=panel["title"]) for panel in PANELS for target in panel["targets"]),
]
#: those of Prometheus itself and of its client library
OTHERS = {"up", "process_cpu_seconds_total", "process_resident_memory_bytes"}
#: names of PostgreSQL's objects
ROLES = {"gateway_app"}
#: only with a replica
OF_REPLICAS = {"gateway_replica_lag_seconds"}
DOCUMENTS = [DEPLOY / "README.md", *sorted((DEPLOY.parent / "docs").rglob("*.md"))]
SHARED = {
    "gateway_jobs",
    "gateway_jobs_oldest_seconds",
    "gateway_workers",
    "gateway_connectors",
    "gateway_sync_lag_seconds",
    "gateway_sync_failed",
    "gateway_sync_incomplete",
    "gateway_sync_held_deletions",
    "gateway_database_connections",
}


def names_told() -> set[str]:
    """The names of all samples that a process tells."""
    names = {*SHARED, *OTHERS}
    for metric in metrics.ALL:
        match metric:
            case Counter():
                names.add(f"{metric.name}_total")
            case Histogram():
                names |= {f"{metric.name}_{part}" for part in ("bucket", "count", "sum")}
            case _:
                names.add(metric.name)
    return names


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_has_only_existing_metrics(expression: str):
    asked = set(re.findall(r"\b(?:gateway|process)_[a-z_]+\b|\bup\b", re.sub(r'"[^"]*"', "", expression)))

    assert asked
    assert asked <= names_told()


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: page.name)
def test_a_document_has_only_existing_metrics(page: Path):
    named = re.findall(r"`(gateway_[a-z_]+|mcp_[a-z_]+_seconds)\b(?!…)", page.read_text("utf-8"))
    told = {re.sub("_(?:total|bucket|count|sum)$", "", name) for name in names_told()} | names_told() | OF_REPLICAS

    assert set(named) - told - ROLES == set()


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_is_balanced(expression: str):
    for opening, closing in ("()", "[]", "{}"):
        assert expression.count(opening) == expression.count(closing)


async def test_the_shared_figures_are_reported_by_their_names(database: Database):
    told = (await PrometheusExporter(database, shipped_catalog()).text()).decode()

    assert {name for name in SHARED if f"# TYPE {name} gauge" in told} == SHARED


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule["alert"])
def test_an_alert_says_how_bad_it_is_and_what_to_do(rule: dict[str, object]):
    page = (DEPLOY.parent / "docs" / "how-to" / "operate.md").read_text("utf-8")

    assert rule["labels"] in ({"severity": "page"}, {"severity": "ticket"})
    assert rule["annotations"]
    assert f"`{rule['alert']}`" in page.partition("## What to do when")[2]


def test_the_operators_rules_are_the_same_alerts():
    operators = yaml.safe_load((DEPLOY / "kubernetes" / "monitoring" / "prometheus-rule.yaml").read_text("utf-8"))
    alerts = yaml.safe_load((DEPLOY / "monitoring" / "alerts.yaml").read_text("utf-8"))

    assert operators["spec"] == alerts, "write it anew: the groups of monitoring/alerts.yaml, two spaces in"


def test_alerts_name_jobs_that_are_scraped_with_and_without_the_operator():
    asked = {job for rule in ALERTS for job in re.findall(r'job="([^"]+)"', rule["expr"])}
    scraped = yaml.safe_load((DEPLOY / "monitoring" / "prometheus.yaml").read_text("utf-8"))["scrape_configs"]
    monitor = yaml.safe_load((DEPLOY / "kubernetes" / "monitoring" / "pod-monitor.yaml").read_text("utf-8"))["spec"]
    [selected] = monitor["selector"]["matchExpressions"]

    assert asked
    assert asked <= {config["job_name"] for config in scraped}
    assert monitor["jobLabel"] == selected["key"]
    assert asked <= set(selected["values"])


def test_panels_do_not_overlap_and_have_titles_of_their_own():
    cells = [
        (x, y)
        for panel in DASHBOARD["panels"]
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]

    assert len(cells) == len(set(cells))
    assert len({panel["title"] for panel in PANELS}) == len(PANELS)
