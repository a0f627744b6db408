"""Counters, histograms and gauges, and their text for Prometheus."""

from prometheus_client.parser import text_string_to_metric_families

from gateway.foundation.db.pool import Database
from gateway.foundation.telemetry import metrics
from gateway.foundation.telemetry.metrics import REGISTRY, Counter, Gauge, Histogram
from gateway.run.monitoring.prometheus import PrometheusExporter
from tests.harness.catalog import shipped_catalog


async def scraped(database: Database) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """The samples by name and labels."""
    samples: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    text = (await PrometheusExporter(database, shipped_catalog()).text()).decode()
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            samples.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return samples


def test_a_counter_grows_by_labels():
    counter = Counter("gateway_test_grows", "A test.", ("outcome",))

    counter.add("ok")
    counter.add("ok", by=2)
    counter.add("bad")

    assert (counter.value("ok"), counter.value("bad"), counter.value("other")) == (3, 1, 0)


def test_a_gauge_goes_up_and_down_also_when_the_block_fails():
    gauge = Gauge("gateway_test_level", "A test.")

    try:
        with gauge.one_more():
            during = REGISTRY.get_sample_value("gateway_test_level")
            raise ValueError
    except ValueError:
        pass

    assert during == 1
    assert REGISTRY.get_sample_value("gateway_test_level") == 0


def test_a_histogram_counts_each_duration_in_its_bucket():
    histogram = Histogram("gateway_test_seconds", "A test.", ("kind",))

    for seconds in (0.0005, 0.001, 0.0011, 1e9):
        histogram.observe(seconds, "a")

    within = {
        bound: REGISTRY.get_sample_value("gateway_test_seconds_bucket", {"kind": "a", "le": bound})
        for bound in ("0.001", "0.0025", "120.0", "+Inf")
    }
    assert within == {"0.001": 2, "0.0025": 3, "120.0": 3, "+Inf": 4}
    assert REGISTRY.get_sample_value("gateway_test_seconds_sum", {"kind": "a"}) == 1e9 + 0.0026


def test_every_metric_has_a_unique_name_with_the_prefix_of_the_gateway_or_of_opentelemetry_and_a_description():
    names = [metric.name for metric in metrics.ALL]

    assert all(name.startswith(("gateway_", "mcp_")) for name in names)
    assert all(metric.documentation.endswith(".") for metric in metrics.ALL)
    assert len(set(names)) == len(names)


async def test_a_scrape_has_counters_histograms_connections_and_the_shared_statistics(database: Database):
    before = (await scraped(database)).get("gateway_executes_total", {})
    labels = (("action", "list"), ("entity", "tickets"), ("kind", "support-desk"), ("outcome", "succeeded"))

    metrics.EXECUTES.add("support-desk", "tickets", "list", "succeeded")
    metrics.EXECUTE_SECONDS.observe(0.02, "support-desk")
    samples = await scraped(database)

    assert samples["gateway_executes_total"][labels] == before.get(labels, 0) + 1
    buckets = samples["gateway_execute_seconds_bucket"]
    assert (
        buckets[(("kind", "support-desk"), ("le", "+Inf"))] >= buckets[(("kind", "support-desk"), ("le", "0.025"))] > 0
    )
    assert sum(samples["gateway_database_connections"].values()) >= 1
    assert samples["gateway_jobs"] == {(("status", status),): 0 for status in ("queued", "running", "waiting")}
    assert samples["gateway_leases_lost_total"][()] >= 0
    assert "process_resident_memory_bytes" in samples


async def test_a_scrape_answers_also_while_postgresql_is_unavailable(database_url: str):
    async with Database.open(database_url, size=1) as pool:
        exporter = PrometheusExporter(pool, shipped_catalog())
    text = await exporter.text()

    assert b"gateway_event_loop_lag_seconds" in text
    assert b"gateway_jobs{" not in text
