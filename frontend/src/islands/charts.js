// Charts other than curves: bars, heat maps, scattered points and parallel coordinates, drawn by ECharts.
//
//   <div class="chart" data-island="charts" data-chart='JSON' role="img" aria-label="Samples per class">fallback</div>
//
// What stands inside (such as an SVG, or nothing) is shown until the chart is there, and where there is no script. The
// element needs a height (class `chart` has one). When `data-chart` changes, as after a morph, it is drawn again. A page
// has the same values as a table beside it: a chart is an image, and its links must be reachable there as well.
// The JSON never holds options of ECharts; it is one of:
//
// { "kind": "bar", "names": ["cat", "dog"], "series": [{ "name": "Training", "values": [3, 4] }],
//   "x": "Class", "y": "Samples",     titles of the axes; "x" is that of the names
//   "stacked": true,                  series on top of each other; default false: side by side
//   "across": true,                   bars lie, names at the left; default false: bars stand
//   "close": true,                    no gaps between bars, as in a histogram; of names such as "10 to 20" the axis has "10"
//   "log": true,                      logarithmic values
//   "percent": true,                  values from 0 to 1 are shown as percent
//   "links": ["/a", null] }           where a click on each name leads
//
// { "kind": "heat", "rows": ["cat", "dog"], "columns": ["cat", "dog"], "values": [[3, 1], [0, 4]],   [row][column]
//   "x": "Predicted", "y": "Label",   titles of columns and rows; null among the values leaves a cell empty
//   "log": true, "percent": true,     as above
//   "shares": [[0.75, 0.25], [0, 1]], what decides the color instead of the value, from 0 to 1
//   "link": "/explore?a={row}&b={column}" }   {row}, {column}: names; {row_number}, {column_number}: places from 0
//
// { "kind": "scatter", "x": "Width", "y": "Height", "x_log": true, "y_log": true,
//   "groups": [{ "name": "cat", "points": [[10, 20, "name of the point", "/link"]] }],   the last two may be missing
//   "diagonal": true }                a line where both values are the same
//
// { "kind": "parallel",
//   "axes": [{ "name": "learning rate", "log": true }, { "name": "network", "categories": ["a", "b"] }],
//   "lines": [{ "name": "run 1", "values": [0.1, "a"], "link": "/jobs/1" }],   null where a line has no value
//   "color": 1,                      number of the axis whose values color the lines; default: the last one
//   "own_colors": true }             each line has a color of its own instead, as the curves of the same runs have
//
// Links lead to addresses of this host only. A click tells the element as well, by an event that bubbles:
//   "chart:choose", detail { kind, name, series, row, column, value, number }   what does not apply is undefined
// and a choice of ranges on parallel axes by "chart:brush", detail { names }: the lines that are left.
import { BarChart, HeatmapChart, LineChart, ParallelChart, ScatterChart } from "echarts/charts";
import {
  DataZoomComponent,
  GridComponent,
  LegendComponent,
  ParallelComponent,
  TooltipComponent,
  VisualMapComponent,
} from "echarts/components";
import { init, use } from "echarts/core";
import { CanvasRenderer } from "echarts/renderers";
import { Look } from "./charts/look.js";
import { optionOf } from "./charts/options.js";

use([
  BarChart,
  HeatmapChart,
  LineChart,
  ParallelChart,
  ScatterChart,
  DataZoomComponent,
  GridComponent,
  LegendComponent,
  ParallelComponent,
  TooltipComponent,
  VisualMapComponent,
  CanvasRenderer,
]);

class Chart {
  constructor(element) {
    this.element = element;
    this.place = document.createElement("div");
    this.place.className = "chart-canvas";
    element.replaceChildren(this.place);
    this.plot = init(this.place, null, { renderer: "canvas" });
    this.plot.on("click", (event) => this.choose(event));
    this.plot.on("axisareaselected", () => this.brushed());
    this.draw();
  }

  start() {
    const again = () => this.draw();
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const sizes = new ResizeObserver(() => this.resize());
    const changes = new MutationObserver(() => this.changed());
    document.addEventListener("ziggurat:theme", again);
    dark.addEventListener("change", again);
    sizes.observe(this.element);
    changes.observe(this.element, { attributes: true, attributeFilter: ["data-chart"], childList: true });
    return () => {
      document.removeEventListener("ziggurat:theme", again);
      dark.removeEventListener("change", again);
      sizes.disconnect();
      changes.disconnect();
      this.plot.dispose();
    };
  }

  draw() {
    this.text = this.element.dataset.chart;
    this.asked = JSON.parse(this.text);
    this.wasWide = this.isWide();
    this.plot.setOption(optionOf(this.asked, new Look(this.element), this.element.clientWidth), true);
  }

  // A morph puts the fallback back in, and may bring other values.
  changed() {
    if (this.place.parentElement !== this.element || this.element.children.length > 1) this.element.replaceChildren(this.place);
    if (this.element.dataset.chart !== this.text) this.draw();
  }

  isWide() {
    return this.element.clientWidth > 560;
  }

  resize() {
    if (!this.element.clientWidth) return;
    this.plot.resize();
    if (this.isWide() !== this.wasWide) this.draw();
  }

  choose(event) {
    const detail = chosen(this.asked, event);
    if (!detail) return;
    const isTaken = !this.element.dispatchEvent(new CustomEvent("chart:choose", { bubbles: true, cancelable: true, detail }));
    const target = detail.link && new URL(detail.link, location.href);
    if (!isTaken && target && target.origin === location.origin) location.assign(target);
  }

  brushed() {
    const series = this.plot.getModel().getSeries()[0];
    if (this.asked.kind !== "parallel" || !series) return;
    const left = series.getRawIndicesByActiveState("active");
    const every = left.length ? left : series.getRawIndicesByActiveState("normal");
    const names = every.map((number) => this.asked.lines[number].name);
    this.element.dispatchEvent(new CustomEvent("chart:brush", { bubbles: true, detail: { names } }));
  }
}

// What a click means in the words of the page.
function chosen(asked, { dataIndex: number, seriesName, seriesIndex, value }) {
  if (number === undefined) return null;
  if (asked.kind === "bar") {
    return { kind: "bar", name: asked.names[number], series: seriesName, value, number, link: asked.links?.[number] };
  }
  if (asked.kind === "heat") {
    const [column, row] = value;
    const known = { row: asked.rows[row], column: asked.columns[column], row_number: row, column_number: column };
    const link = asked.link?.replace(/\{(\w+)\}/g, (whole, name) => (name in known ? encodeURIComponent(known[name]) : whole));
    return { kind: "heat", row: known.row, column: known.column, value: asked.values[row][column], number, link };
  }
  if (asked.kind === "scatter") {
    const point = asked.groups[seriesIndex].points[number];
    return { kind: "scatter", name: point[2], series: seriesName, value: point.slice(0, 2), number, link: point[3] };
  }
  const line = asked.lines[number];
  return { kind: "parallel", name: line.name, value: line.values, number, link: line.link };
}

export function mount(element) {
  return new Chart(element).start();
}
