// One chart with its keys, its tooltip and its table of values.
import uPlot from "uplot";
import looks from "uplot/dist/uPlot.min.css";
import { clockText, colours, durationText, el, icon, numberText, percentText, swatch } from "./dom.js";
import { isShare, unitOf } from "./groups.js";
import { linesOf, tableOf, valueAt } from "./lines.js";
import { bestOf, drawBest, drawMarks, marksOf, textsAt } from "./marks.js";
import { decades, farDecades, isVast, roundRange, usualRangeOf } from "./ranges.js";
import { Tip } from "./tip.js";

const ROWS = 200;
const FEW_POINTS = 60;
const FLAGS_PX = 18;
const TOKENS = ["--ink-2", "--ink-3", "--grid", "--axis", "--surface", "--bad", "--ok", "--series-context", ...[1, 2, 3, 4, 5, 6, 7, 8].map((number) => `--series-${number}`)];
const X_NAMES = { step: "Step", epoch: "Epoch", time: "Time" };
const TIME_STEPS_S = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400, 172800, 604800];

const FAR_TICKS = { splits: (_plot, _axis, least, most) => farDecades(least, most), filter: (_plot, ticks) => ticks };

// A style sheet of its own would be one more thing that the first paint waits for.
const sheet = new CSSStyleSheet();
sheet.replaceSync(looks);
document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];

let number = 0;

export class Chart {
  constructor(group, { widen }) {
    this.group = group;
    this.plot = null;
    this.drawn = "";
    this.isZoomed = false;
    this.isWhole = false; // the y range, with values far outside
    this.index = null;
    this.marks = [];
    this.best = null;
    const id = `curve-${(number += 1)}`;
    const button = (name, content, act, more = {}) => el("button", { type: "button", class: "icon-button", "aria-label": name, title: name, onclick: act, ...more }, content);
    this.keys = el("ul", { class: "curve-keys" });
    this.rangeButton = el("button", { type: "button", class: "quiet small", hidden: true, "aria-pressed": "false", onclick: () => this.#switchRange() }, "Full range");
    this.resetButton = el("button", { type: "button", class: "quiet small", hidden: true, onclick: () => this.#reset() }, "Reset zoom");
    this.tableButton = button(`${group.title} as a table`, icon("table"), () => this.#switchTable(), { "aria-expanded": "false", "aria-controls": `${id}-table` });
    this.wideButton = button(`${group.title} at full width`, icon("expand"), () => widen(this), { "aria-pressed": "false" });
    this.canvas = el("div", { class: "curve-plot", id, tabindex: 0, role: "group", onkeydown: (event) => this.#key(event), onblur: () => this.tip.hide() });
    this.tip = new Tip(this.canvas);
    this.unit = el("span", { class: "curve-unit" });
    this.along = el("span", { class: "curve-along" });
    this.spoken = el("p", { class: "visually-hidden", "aria-live": "polite" });
    this.note = el("p", { class: "curve-note", hidden: true });
    this.table = el("div", { class: "scroll", id: `${id}-table`, hidden: true, tabindex: 0, role: "region", "aria-label": `Values of ${group.title}` });
    const head = el("figcaption", { class: "card-head" }, el("h3", {}, group.title), this.keys, el("span", { class: "curve-acts" }, this.rangeButton, this.resetButton, this.tableButton, this.wideButton));
    this.element = el("figure", { class: "card curve", "data-curve": group.key }, head, this.unit, this.canvas, this.along, this.note, this.spoken, this.table);
    this.observer = new ResizeObserver(() => this.#fit());
    this.observer.observe(this.canvas);
  }

  draw(group, runs, settings) {
    this.group = group;
    this.settings = settings;
    this.run = runs[0];
    this.lines = linesOf(group, runs, settings.isEqual);
    this.isPercent = isShare(group.base, this.lines.map((line) => line.run.curves.get(line.tag)));
    this.data = tableOf(this.lines, settings);
    this.isLog = settings.isLog || isVast(this.data.slice(1));
    this.marks = this.run ? marksOf(this.run, settings) : [];
    this.best = this.run ? bestOf(this.run, settings) : null;
    this.unit.textContent = [unitOf(group.base, this.isPercent), this.isLog && !settings.isLog && "logarithmic"].filter(Boolean).join(", ");
    this.along.textContent = X_NAMES[settings.x];
    const shape = JSON.stringify([this.lines.map((line) => [line.run.id, line.tag, line.label]), this.isLog, settings.x, settings.smoothing > 0, this.isPercent]);
    if (!this.plot || shape !== this.drawn) this.#build(shape);
    else {
      const { min, max } = this.plot.scales.x;
      const kept = this.isZoomed ? [min, max] : this.#whole();
      this.plot.setData(this.data, false);
      this.plot.setScale("x", { min: kept[0], max: kept[1] });
    }
    this.#showKeys();
    this.#showTable();
  }

  redraw() {
    this.#build(this.drawn);
  }

  widen(isWide) {
    this.element.classList.toggle("wide", isWide);
    this.wideButton.setAttribute("aria-pressed", String(isWide));
  }

  end() {
    this.observer.disconnect();
    this.plot?.destroy();
  }

  #fit() {
    if (this.canvas.clientWidth) this.plot?.setSize({ width: this.canvas.clientWidth, height: this.canvas.clientHeight });
  }

  #build(shape) {
    this.drawn = shape;
    this.plot?.destroy();
    this.isZoomed = false;
    const colour = colours(this.element, TOKENS);
    const font = getComputedStyle(this.element).fontFamily;
    const series = this.lines.flatMap((line) => {
      const look = { label: line.label, stroke: colour[line.token], dash: line.dash ?? undefined };
      const isFew = line.run.curves.get(line.tag).steps.length < FEW_POINTS;
      const points = { show: isFew, size: 5, fill: colour[line.token] };
      const raw = { ...look, width: 1, alpha: 0.3, dash: undefined, points: { show: false }, show: this.settings.smoothing > 0 && !isFew };
      return [raw, { ...look, width: 2, points }];
    });
    const axis = { stroke: colour["--ink-2"], font: `11px ${font}`, border: { show: true, stroke: colour["--axis"], width: 1 } };
    const isTime = this.settings.x === "time";
    const options = {
      width: Math.max(this.canvas.clientWidth, 50),
      height: Math.max(this.canvas.clientHeight, 50),
      padding: [FLAGS_PX, 12, 0, 0],
      legend: { show: false },
      cursor: { y: false, drag: { x: true, y: false }, sync: { key: "curves" }, points: { size: 8 }, dataIdx: (plot, place, index) => nearest(plot, place, index) },
      scales: { x: { time: false }, y: this.isLog ? { distr: 3, range: (_plot, least, most) => decades(least, most) } : { range: (plot) => this.#range(plot) } },
      axes: [
        { ...axis, size: 26, gap: 4, grid: { show: false }, ticks: { stroke: colour["--axis"], width: 1, size: 4 }, ...(isTime ? { incrs: TIME_STEPS_S, space: 75 } : { space: 60 }), values: (_plot, ticks) => ticks.map((tick) => (isTime ? clockText(tick) : numberText(tick))) },
        { ...axis, ...(isVast(this.data.slice(1)) && FAR_TICKS), size: 46, gap: 4, space: 28, border: { show: false }, ticks: { show: false }, grid: { stroke: colour["--grid"], width: 1 }, values: (_plot, ticks) => ticks.map((tick) => (tick == null ? "" : this.#tickText(tick))) },
      ],
      series: [{ label: X_NAMES[this.settings.x] }, ...series],
      hooks: { draw: [(plot) => this.#drawMarks(plot, colour, font)], setCursor: [(plot) => this.#moved(plot)], setScale: [(plot, key) => key === "x" && this.#scaled(plot)] },
    };
    this.plot = new uPlot(options, this.data, this.canvas);
    this.plot.over.addEventListener("mouseleave", () => this.tip.hide());
    this.#reset();
  }

  // From the begin of the training to its newest point.
  #whole() {
    // A divergence has no point of its own; its mark stands behind the newest one.
    const end = this.marks.find((mark) => mark.kind === "divergence")?.x ?? 0;
    const last = Math.max(this.data[0].at(-1) ?? 1, end);
    return this.data[0].length ? [Math.min(0, this.data[0][0]), last > 0 ? last : 1] : [0, 1];
  }

  // Of what is in sight along x; a value far from all others is left out until somebody asks for it.
  #range(plot) {
    const [from, to] = [plot.series[0].idxs?.[0] ?? 0, plot.series[0].idxs?.[1] ?? this.data[0].length - 1];
    const usual = usualRangeOf(this.data.slice(1).map((column) => column.slice(from, to + 1)));
    this.rangeButton.hidden = !usual.isCut && !this.isWhole;
    return this.isWhole ? roundRange(usual.least, usual.most, this.isPercent) : roundRange(usual.min, usual.max, this.isPercent);
  }

  #switchRange() {
    this.isWhole = !this.isWhole;
    this.rangeButton.setAttribute("aria-pressed", String(this.isWhole));
    const { min, max } = this.plot.scales.x;
    this.plot.setScale("x", { min, max });
  }

  #drawMarks(plot, colour, font) {
    drawMarks(plot, this.marks, colour, font);
    const isOwn = Boolean(this.best && this.group.tags.includes(this.best.tag));
    const texts = this.best ? [`Best ${this.#text(this.best.value)}`, this.best.epoch == null ? `step ${this.best.step}` : `epoch ${this.best.epoch}`] : [];
    drawBest(plot, this.best, isOwn, texts, colour, font);
  }

  #text(value) {
    return this.isPercent ? percentText(value) : numberText(value);
  }

  #tickText(tick) {
    return this.isPercent ? `${Number((100 * tick).toPrecision(4))}\u202f%` : numberText(tick);
  }

  #placeText(place) {
    const { x } = this.settings;
    if (x === "time") return durationText(place);
    const perEpoch = this.run.stepsPerEpoch;
    if (!perEpoch) return `Step ${numberText(place)}`;
    const [epoch, step] = x === "epoch" ? [place, place * perEpoch] : [place / perEpoch, place];
    return `Epoch ${Number(epoch.toFixed(2))}, step ${Math.round(step).toLocaleString("en")}`;
  }

  #scaled(plot) {
    const [first, last] = this.#whole();
    this.isZoomed = plot.data[0].length > 1 && (plot.scales.x.min > first || plot.scales.x.max < last);
    this.resetButton.hidden = !this.isZoomed;
  }

  #reset() {
    const [min, max] = this.#whole();
    this.plot.setScale("x", { min, max });
  }

  #moved(plot) {
    this.index = plot.cursor.idx ?? null;
    this.#showKeys();
    const isHere = plot.over.matches(":hover") || document.activeElement === this.canvas;
    if (!isHere || this.index === null || plot.cursor.left < 0) {
      this.tip.hide();
      return;
    }
    const place = this.data[0][this.index];
    const rows = this.lines.map((line, at) => [line, line.label || this.group.title, this.#text(this.#valueAt(at, this.index))]);
    const rate = this.settings.isEqual || this.group.key === "learning_rate" ? undefined : valueAt(this.run.curves.get("learning_rate"), this.run, this.settings.x, place);
    this.tip.show(plot, this.#placeText(place), rows, rate, textsAt(plot, this.marks));
  }

  #key(event) {
    if (event.target !== this.canvas) return;
    const xs = this.data[0];
    const { min, max } = this.plot.scales.x;
    const at = this.index ?? xs.length - 1;
    if (event.key === "ArrowLeft" || event.key === "ArrowRight") this.#go(Math.min(xs.length - 1, Math.max(0, at + (event.key === "ArrowLeft" ? -1 : 1))));
    else if ((event.key === "+" || event.key === "-") && xs.length > 1) {
      const half = ((max - min) / 2) * (event.key === "+" ? 0.5 : 2);
      const [first, last] = this.#whole();
      this.plot.setScale("x", { min: Math.max(first, xs[at] - half), max: Math.min(last, xs[at] + half) });
    } else if (event.key === "Escape" && this.isZoomed) this.#reset();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  #go(index) {
    if (!this.data[0].length) return;
    const plot = this.plot;
    plot.setCursor({ left: plot.valToPos(this.data[0][index], "x"), top: plot.over.clientHeight / 2 });
    this.spoken.textContent = `${this.#placeText(this.data[0][index])}: ${this.lines.map((line, at) => `${line.label || this.group.title} ${this.#text(this.#valueAt(at, index))}`).join(", ")}`;
  }

  // What was recorded at a place, or last before it.
  #valueAt(line, index) {
    const column = this.data[1 + 2 * line] ?? [];
    for (let at = index; at >= 0; at -= 1) if (column[at] != null) return column[at];
    return null;
  }

  #showKeys() {
    const index = this.index ?? this.data[0].length - 1;
    const items = this.lines.map((line, at) => el("li", {}, swatch(line.token, line.dash), el("span", { class: "name" }, line.label), el("b", {}, this.#text(this.#valueAt(at, index)))));
    this.keys.replaceChildren(...items);
    if (this.index !== null) return; // what follows does not change with the cursor
    const strange = this.lines.reduce((sum, line) => sum + line.run.curves.get(line.tag).values.filter((value) => !Number.isFinite(value)).length, 0);
    this.note.hidden = strange === 0;
    this.note.textContent = strange ? `${strange} ${strange === 1 ? "value is" : "values are"} not finite.` : "";
    const best = this.best && this.group.tags.includes(this.best.tag) ? `, best ${this.#text(this.best.value)} at epoch ${this.best.epoch}` : "";
    const values = this.lines.map((line, at) => `${line.label || "newest"} ${this.#text(this.#valueAt(at, index))}`).join(", ");
    this.canvas.setAttribute("aria-label", `Chart of ${this.group.title}: ${values}${best}. Left and right move the cursor, plus and minus zoom.`);
  }

  #switchTable() {
    this.table.hidden = !this.table.hidden;
    this.tableButton.setAttribute("aria-expanded", String(!this.table.hidden));
    this.#showTable();
  }

  #showTable() {
    if (this.table.hidden || !this.lines) return;
    const xs = this.data[0];
    const from = Math.max(0, xs.length - ROWS);
    const place = (x) => (this.settings.x === "time" ? durationText(x) : numberText(x));
    const rows = [];
    for (let index = xs.length - 1; index >= from; index -= 1) {
      const cells = this.lines.map((_line, at) => el("td", { class: "number" }, this.#text(this.data[1 + 2 * at][index])));
      rows.push(el("tr", {}, el("th", { scope: "row", class: "number" }, place(xs[index])), ...cells));
    }
    const heads = this.lines.map((line) => el("th", { scope: "col", class: "number" }, line.label || this.group.title));
    const head = el("thead", {}, el("tr", {}, el("th", { scope: "col", class: "number" }, X_NAMES[this.settings.x]), ...heads));
    const short = from > 0 ? [el("p", { class: "soft" }, `The newest ${ROWS}; the CSV has all.`)] : [];
    const scrolled = this.table.scrollTop;
    this.table.replaceChildren(...short, el("table", { class: "compact" }, head, el("tbody", {}, ...rows)));
    this.table.scrollTop = scrolled;
  }
}

// The point of a line that the cursor marks: the newest one before, where it has none at that very place.
function nearest(plot, place, index) {
  if (place === 0) return index;
  if (place % 2) return null; // as it was recorded: its smooth line has the mark
  const column = plot.data[place];
  for (let at = index; at >= 0; at -= 1) if (column[at] != null) return at;
  return index;
}

