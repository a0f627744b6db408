// Draws the plots: each .plot names the series that it shows, of the data-plots around it.
"use strict";
const style = getComputedStyle(document.documentElement);
const color = (name) => style.getPropertyValue(name).trim();
const ink = (i) => color(["--brand", "--wrong"][i]);
// A single value makes no line, so it is drawn as a dot.
const single = (plot, series) => {
  const values = plot.data[series], present = [...values.keys()].filter((i) => values[i] != null);
  return present.length === 1 ? present : [];
};
// Times are ISO 8601, in the browser's zone: increment of the ticks in seconds, text, and second line where a day begins.
const date = "\n{YYYY}-{MM}-{DD}", times = [[86400, "{YYYY}-{MM}-{DD}", null], [60, "{HH}:{mm}", date], [1, "{HH}:{mm}:{ss}", date]]
  .map(([increment, text, day]) => [increment, text, day, null, day, null, null, null, 1]);
const number = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
// 340 ms, 1.2 s, 3 min
const duration = (ms) => ms < 1000 ? `${+ms.toFixed(ms < 10 ? 1 : 0)} ms` : ms < 60000 ? `${+(ms / 1000).toFixed(1)} s` : `${+(ms / 60000).toFixed(1)} min`;
const texts = { calls: number.format, errors: number.format, p50_ms: duration, p95_ms: duration };
const labels = { p50_ms: "median", p95_ms: "95th percentile" };
// As wide as the longest label, so that none is clipped.
const wide = (plot, values) => 18 + 7 * Math.max(4, ...(values ?? []).map((value) => value.length));
const series = (name, i) => ({
  label: labels[name] ?? name,
  stroke: ink(i),
  value: (plot, value) => value == null ? "–" : texts[name](value),
  // Errors are counts of their own: bars, beside the line of all calls.
  ...(name === "errors"
    ? { paths: uPlot.paths.bars({ size: [0.8, 24] }), fill: ink(i), points: { show: false } }
    : { width: 2, spanGaps: true, points: { show: true, filter: single, fill: ink(i) } }),
});
for (const holder of document.querySelectorAll("[data-plots]")) {
  const data = JSON.parse(holder.dataset.plots);
  for (const place of holder.querySelectorAll(".plot")) {
    const names = place.dataset.series.split(" "), text = texts[names[0]];
    const options = () => ({ width: place.clientWidth, height: 190 });
    let plot;
    const draw = () => {
      plot?.destroy();
      const grid = { stroke: color("--line") }, axis = { stroke: color("--soft"), grid, ticks: grid };
      plot = new uPlot(
        {
          ...options(),
          padding: [12, 28, 0, 0],
          series: [{ value: "{YYYY}-{MM}-{DD} {HH}:{mm}:{ss}" }, ...names.map(series)],
          axes: [{ ...axis, values: times, space: 80 }, { ...axis, size: wide, values: (_, ticks) => ticks.map((tick) => tick == null ? "" : text(tick)) }],
          scales: { y: { range: (_, low, high) => [0, Math.max(1, high ?? 1)] } },
        },
        [data.at, ...names.map((name) => data[name])],
        place,
      );
    };
    draw();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
    new ResizeObserver(() => plot.setSize(options())).observe(place);
  }
}
