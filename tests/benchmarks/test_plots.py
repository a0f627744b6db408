"""Plots are well-formed SVG that shows what it was given."""

from xml.etree import ElementTree

from tests.benchmarks.plots import Bars, Plot
from tests.benchmarks.report import Figure, Report

SVG = "{http://www.w3.org/2000/svg}"


def test_lines_have_a_point_for_each_value_and_a_legend():
    plot = Plot("p", "a < b", "x", "ms", {"p50": [(10, 1), (100, 2)], "p99": [(10, 3), (100, 9)]}, is_logarithmic=True)

    drawn = ElementTree.fromstring(plot.svg())

    assert len(drawn.findall(f"{SVG}circle")) == 4
    texts = [text.text for text in drawn.findall(f"{SVG}text")]
    assert {"a < b", "p50", "p99", "10", "100"} <= set(texts)


def test_the_highest_value_is_the_highest_point():
    plot = Plot("p", "t", "x", "y", {"a": [(1, 5), (2, 50), (3, 20)]})

    heights = [float(point.get("cy", 0)) for point in ElementTree.fromstring(plot.svg()).findall(f"{SVG}circle")]

    assert min(heights) == heights[1]


def test_bars_stand_in_groups():
    bars = Bars("b", "t", "req/s", {"2 KB": {"gateway": 10, "relay": 20}, "100 KB": {"gateway": 5}})

    drawn = ElementTree.fromstring(bars.svg())

    assert [title.text for title in drawn.iter(f"{SVG}title")] == [
        "gateway: 10",
        "relay: 20",
        "gateway: 5",
        "relay: 0",
    ]


def test_a_report_names_its_plots_and_what_it_missed():
    figure = Figure("slow", 3, 1, "ms", at_most=2)
    report = Report("R", [figure], plots=[Bars("b", "t", "y", {"g": {"a": 1}})])

    assert report.missed == [figure]
    assert "| slow | 3 ms | 1 ms | 3.00 | ≤ 2 | missed |" in report.markdown()
    assert "![t](plots/b.svg)" in report.markdown()
