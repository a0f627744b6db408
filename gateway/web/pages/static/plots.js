// Draws the plots: each .plot names the series that it shows, of the data-plots around it.
"use strict";
const style = getComputedStyle(document.documentElement);
const colors = [style.getPropertyValue("--brand").trim(), style.getPropertyValue("--wrong").trim()];
// A single value makes no line, so it is drawn as a dot.
const single = (plot, series) => {
  const values = plot.data[series], present = [...values.keys()].filter((i) => values[i] != null);
  return present.length === 1 ? present : [];
};
// Times are ISO 8601, in the browser's zone: increment of the ticks in seconds, text, and second line where a day begins.
const date = "\n{YYYY}-{MM}-{DD}", times = [[86400, "{YYYY}-{MM}-{DD}", null], [60, "{HH}:{mm}", date], [1, "{HH}:{mm}:{ss}", date]]
  .map(([increment, text, day]) => [increment, text, day, null, day, null, null, null, 1]);
for (const holder of document.querySelectorAll("[data-plots]")) {
  const data = JSON.parse(holder.dataset.plots);
  for (const place of holder.querySelectorAll(".plot")) {
    const names = place.dataset.series.split(" ");
    const ink = style.getPropertyValue("--soft").trim(), grid = { stroke: style.getPropertyValue("--line").trim() };
    const axis = { stroke: ink, grid, ticks: grid };
    const options = () => ({ width: place.clientWidth, height: 180 });
    const plot = new uPlot(
      {
        ...options(),
        series: [{ value: "{YYYY}-{MM}-{DD} {HH}:{mm}:{ss}" }, ...names.map((name, i) => ({ label: name.replace("_", " "), stroke: colors[i], width: 2, spanGaps: true, points: { show: true, filter: single, fill: colors[i] } }))],
        axes: [{ ...axis, values: times }, axis],
        scales: { y: { range: (_, low, high) => [0, Math.max(1, high ?? 1)] } },
      },
      [data.at, ...names.map((name) => data[name])],
      place,
    );
    new ResizeObserver(() => plot.setSize(options())).observe(place);
  }
}
