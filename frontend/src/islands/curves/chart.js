// One chart with its legend and its table of values.
import uPlot from "uplot";
import looks from "uplot/dist/uPlot.min.css";
import { clockText, colours, durationText, el, numberText, swatch } from "./dom.js";
import { linesOf, tableOf } from "./lines.js";
import { drawMarks, labelOf, marksOf, textsAt } from "./marks.js";

const HEIGHT_PX = 224;
const ROWS = 200;
const TOKENS = ["--ink-soft", "--line", "--bad", ...[1, 2, 3, 4, 5, 6].map((number) => `--series-${number}`)];
const X_NAMES = { step: "Step", epoch: "Epoch", time: "Time" };

const TIME_STEPS_S = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400, 172800, 604800];

// Whole powers of ten around the values; a value that stands still gets some room, too.
function decades(_plot, least, most) {
  if (least == null) return [0.1, 1];
  return least === most ? [least / 10, most * 10] : uPlot.rangeLog(least, most, 10, true);
}

// A style sheet of its own would be one more thing that the first paint waits for.
const sheet = new CSSStyleSheet();
sheet.replaceSync(looks);
document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];

export class Chart {
  constructor(group, { isPinned, pin }) {
    this.group = group;
    this.plot = null;
    this.drawn = "";
    this.isZoomed = false;
    this.index = null;
    this.pinButton = el("button", { type: "button", class: "quiet small", "aria-label": `${isPinned ? "Unpin" : "Pin"} ${group.title}`, title: "Pinned charts come first, on the page of every job", onclick: () => pin(group.key) }, isPinned ? "Unpin" : "Pin");
    this.resetButton = el("button", { type: "button", class: "quiet small", hidden: true, onclick: () => this.#reset() }, "Whole range");
    this.canvas = el("div", { class: "curve-plot", tabindex: 0, role: "group", "aria-label": `Chart of ${group.title}. Left and right move the cursor, plus and minus zoom, Escape shows everything.`, onkeydown: (event) => this.#key(event) });
    this.legend = el("ul", { class: "curve-legend" });
    this.place = el("p", { class: "curve-place" });
    this.spoken = el("p", { class: "visually-hidden", "aria-live": "polite" });
    this.note = el("p", { class: "curve-note" });
    this.marks = [];
    this.mark = labelOf();
    this.table = el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `Values of ${group.title}` });
    this.details = el("details", { ontoggle: () => this.#showTable() }, el("summary", {}, "Values as a table"), this.table);
    const head = el("div", { class: "curve-head" }, el("h3", {}, group.title), el("span", {}, this.resetButton, this.pinButton));
    this.element = el("div", { class: "curve", "data-curve": group.key }, head, this.canvas, this.mark, this.legend, this.place, this.note, this.spoken, this.details);
    this.observer = new ResizeObserver(() => this.plot?.setSize({ width: this.canvas.clientWidth, height: HEIGHT_PX }));
    this.observer.observe(this.canvas);
  }

  draw(group, runs, settings) {
    this.group = group;
    this.settings = settings;
    this.lines = linesOf(group, runs, settings.isEqual);
    this.data = tableOf(this.lines, settings);
    this.marks = runs.length ? marksOf(runs[0], settings) : [];
    const looks = JSON.stringify([this.lines.map((line) => [line.run.id, line.tag, line.label]), settings.isLog, settings.x, settings.smoothing > 0]);
    if (!this.plot || looks !== this.drawn) this.#build(looks);
    else if (this.isZoomed) {
      const { min, max } = this.plot.scales.x;
      this.plot.setData(this.data, false);
      this.plot.setScale("x", { min, max });
    } else this.plot.setData(this.data, true);
    this.#showLegend();
    this.#showTable();
  }

  redraw() {
    this.#build(this.drawn);
  }

  end() {
    this.observer.disconnect();
    this.plot?.destroy();
  }

  #build(looks) {
    this.drawn = looks;
    this.plot?.destroy();
    this.isZoomed = false;
    const colour = colours(this.element, TOKENS);
    const isSmooth = this.settings.smoothing > 0;
    const series = this.lines.flatMap((line) => {
      const look = { label: line.label, stroke: colour[line.token], dash: line.dash ?? undefined, points: { show: (plot, index) => plot.data[index].length < 60, size: 5 } };
      if (!isSmooth) return [{ ...look, width: 1.75 }];
      return [{ ...look, width: 1, alpha: 0.35, points: { show: false } }, { ...look, width: 2, points: { show: false } }];
    });
    const axis = { stroke: colour["--ink-soft"], grid: { stroke: colour["--line"], width: 1 }, ticks: { stroke: colour["--line"], width: 1 }, font: "12px system-ui, sans-serif" };
    const options = {
      width: Math.max(this.canvas.clientWidth, 50),
      height: HEIGHT_PX,
      legend: { show: false },
      cursor: { drag: { x: true, y: false }, sync: { key: "curves" }, points: { size: 6 } },
      scales: { x: { time: false }, y: this.settings.isLog ? { distr: 3, range: decades } : {} },
      axes: [
        { ...axis, ...(this.settings.x === "time" ? { incrs: TIME_STEPS_S, space: 75 } : {}), values: (_plot, ticks) => ticks.map((tick) => (this.settings.x === "time" ? clockText(tick) : numberText(tick))) },
        { ...axis, size: 58, values: (_plot, ticks) => ticks.map((tick) => (tick == null ? "" : numberText(tick))) },
      ],
      series: [{ label: X_NAMES[this.settings.x] }, ...series],
      hooks: { draw: [(plot) => drawMarks(plot, this.marks, colour)], setCursor: [(plot) => this.#moved(plot)], setScale: [(plot, key) => key === "x" && this.#scaled(plot)] },
    };
    this.plot = new uPlot(options, this.data, this.canvas);
  }

  #tickText(tick) {
    return this.settings.x === "time" ? durationText(tick) : numberText(tick);
  }

  #scaled(plot) {
    const [first, last] = [plot.data[0][0], plot.data[0].at(-1)];
    this.isZoomed = plot.data[0].length > 1 && (plot.scales.x.min > first || plot.scales.x.max < last);
    this.resetButton.hidden = !this.isZoomed;
  }

  #reset() {
    this.plot.setData(this.data, true);
  }

  #moved(plot) {
    this.index = plot.cursor.idx ?? null;
    const texts = textsAt(plot, this.marks);
    this.mark.textContent = texts.join(" · ");
    this.mark.hidden = texts.length === 0;
    this.#showLegend();
  }

  #key(event) {
    const xs = this.data[0];
    const { min, max } = this.plot.scales.x;
    const at = this.index ?? xs.length - 1;
    if (event.key === "ArrowLeft" || event.key === "ArrowRight") this.#go(Math.min(xs.length - 1, Math.max(0, at + (event.key === "ArrowLeft" ? -1 : 1))));
    else if ((event.key === "+" || event.key === "-") && xs.length > 1) {
      const half = ((max - min) / 2) * (event.key === "+" ? 0.5 : 2);
      this.plot.setScale("x", { min: Math.max(xs[0], xs[at] - half), max: Math.min(xs.at(-1), xs[at] + half) });
    } else if (event.key === "Escape") this.#reset();
    else return;
    event.preventDefault();
  }

  #go(index) {
    if (!this.data[0].length) return;
    const plot = this.plot;
    plot.setCursor({ left: plot.valToPos(this.data[0][index], "x"), top: plot.bbox.height / devicePixelRatio / 2 });
    this.spoken.textContent = `${this.#placeText(index)}: ${this.lines.map((line, number) => `${line.label} ${numberText(this.#valueAt(number, index))}`).join(", ")}`;
  }

  #column(number) {
    return this.data[1 + number * (this.settings.smoothing > 0 ? 2 : 1)];
  }

  #valueAt(number, index) {
    const column = this.#column(number) ?? [];
    for (let at = index; at >= 0; at -= 1) if (column[at] != null) return column[at];
    return null;
  }

  #placeText(index) {
    const x = this.data[0][index];
    return this.settings.x === "time" ? `after ${durationText(x)}` : `${X_NAMES[this.settings.x].toLowerCase()} ${numberText(x)}`;
  }

  #showLegend() {
    if (!this.lines) return;
    const index = this.index ?? this.data[0].length - 1;
    this.place.textContent = this.index == null ? "Newest values" : `At ${this.#placeText(index)}`;
    let strange = 0;
    const items = this.lines.map((line, number) => {
      strange += line.run.curves.get(line.tag).values.filter((value) => !Number.isFinite(value)).length;
      const range = line.run.scalars[line.tag];
      const span = range ? el("span", { class: "range" }, `${numberText(Number(range.minimum))} to ${numberText(Number(range.maximum))}`) : "";
      return el("li", {}, swatch(line.token, line.dash), el("span", {}, line.label), el("span", { class: "value" }, numberText(this.#valueAt(number, index))), span);
    });
    this.legend.replaceChildren(...items);
    this.note.textContent = strange ? `${strange} ${strange === 1 ? "value is" : "values are"} no finite number.` : "";
  }

  #showTable() {
    if (!this.details.open || !this.lines) return;
    const xs = this.data[0];
    const from = Math.max(0, xs.length - ROWS);
    const rows = [];
    for (let index = xs.length - 1; index >= from; index -= 1) {
      const cells = this.lines.map((_line, number) => el("td", { class: "number" }, numberText(this.#column(number)[index])));
      rows.push(el("tr", {}, el("th", { scope: "row", class: "number" }, this.#tickText(xs[index])), ...cells));
    }
    const heads = this.lines.map((line) => el("th", { scope: "col", class: "number" }, line.label));
    const head = el("thead", {}, el("tr", {}, el("th", { scope: "col", class: "number" }, X_NAMES[this.settings.x]), ...heads));
    const short = from > 0 ? [el("p", { class: "soft" }, `The newest ${ROWS}; the CSV has all.`)] : [];
    const scrolled = this.table.scrollTop;
    this.table.replaceChildren(...short, el("table", {}, head, el("tbody", {}, ...rows)));
    this.table.scrollTop = scrolled;
  }
}
