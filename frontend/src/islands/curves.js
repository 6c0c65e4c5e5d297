// The live curves of a job: charts by metric, in step with the notices of the page. `data-job` names the one whose page
// it is; `data-runs`, instead, several that are equals: each curve gets its own chart, with a line for each run. The
// controls go into the element of `data-tools`.
//
// The library that draws comes while the points are asked for: its beginning takes longer than all the rest, and the
// page can be used meanwhile.
import { bring } from "../brought.js";
import { markOnce } from "../timeline.js";
import { el } from "./curves/dom.js";
import { groupsOf, learnMetrics } from "./curves/groups.js";
import { marksText } from "./curves/marks.js";
import { readPinned, readSettings, writePinned, writeSettings } from "./curves/memory.js";
import { Run } from "./curves/run.js";
import { MOST_COMPARED, chooserOf, comparerOf, menuOf, showEpochs, toolsOf } from "./curves/tools.js";
import { mountLearningRate } from "./learning-rate.js";

const EVERY_MS = 1000;
const RETRY_MS = 3000;

class Curves {
  constructor(element) {
    this.element = element;
    this.api = element.dataset.api;
    learnMetrics(JSON.parse(element.dataset.metrics ?? "{}"));
    this.isEqual = Boolean(element.dataset.runs);
    const named = this.isEqual ? JSON.parse(element.dataset.runs) : [JSON.parse(element.dataset.job)];
    this.runs = named.map((each) => new Run(this.api, each));
    this.settings = readSettings();
    this.pinned = readPinned();
    this.charts = new Map();
    this.Chart = null;
    this.wanted = "";
    this.isBusy = false;
    this.isEnded = false;
    this.timer = 0;
    this.asked = -Infinity; // the first time, at once
    this.marks = marksText();
    this.tools = document.getElementById(element.dataset.tools);
    this.compared = el("ul", { class: "curve-runs", "aria-label": "Compared runs", hidden: true });
    this.choices = el("div", { class: "curve-choices" });
    this.place = el("div", { class: "curve-charts" });
    this.waiting = element.querySelector(".curve-waiting") ?? "";
    const comparer = this.isEqual ? [] : menuOf("curve-compare", "Compare", "plus", "", ...comparerOf(this.api, this.runs[0].id, JSON.parse(element.dataset.parents), (run) => this.compare(run)));
    this.tools?.replaceChildren(...toolsOf(this.settings, (changed) => this.set(changed)), ...comparer, ...menuOf("curve-chooser", "Charts", "columns", "quiet", this.choices));
    element.replaceChildren(this.compared, this.place);
    this.place.append(this.waiting);
  }

  start() {
    const told = (event) => this.plan(event.detail?.kind === "reload" ? "all" : "new");
    const swapped = () => this.#followMarks();
    const themed = () => this.charts.forEach((chart) => chart.plot && chart.redraw());
    const escaped = (event) => event.key === "Escape" && !document.querySelector("dialog[open], :popover-open") && this.widen(null);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    // The page listens before it reads, so that nothing falls between the two.
    document.body.addEventListener("notice-job", told);
    document.addEventListener("ziggurat:theme", themed);
    document.addEventListener("htmx:after:swap", swapped);
    document.addEventListener("keydown", escaped);
    dark.addEventListener("change", themed);
    this.plan("all");
    return () => {
      this.isEnded = true;
      clearTimeout(this.timer);
      document.body.removeEventListener("notice-job", told);
      document.removeEventListener("ziggurat:theme", themed);
      document.removeEventListener("htmx:after:swap", swapped);
      document.removeEventListener("keydown", escaped);
      dark.removeEventListener("change", themed);
      this.charts.forEach((chart) => chart.end());
    };
  }

  // Asks at most once a second, and once more where news came meanwhile.
  plan(what, wait = 0) {
    if (this.wanted !== "all") this.wanted = what;
    if (this.isBusy || this.isEnded) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.update(), Math.max(wait, this.asked + EVERY_MS - performance.now(), 0));
  }

  async update() {
    const isWhole = this.wanted === "all";
    this.wanted = "";
    this.isBusy = true;
    this.asked = performance.now();
    const asked = this.runs.filter((run, number) => number === 0 || run.isActive || isWhole);
    // One that does not answer must not hold up the others: the server is away, or a curve was cut at this moment.
    const answers = [import("./curves/chart.js"), ...asked.map((run) => run.update({ isWhole }))];
    const [library, ...others] = await Promise.allSettled(answers);
    this.isBusy = false;
    if (this.isEnded) return;
    if (library.value) this.Chart = library.value.Chart;
    if (others.some((each) => each.value)) this.draw();
    if ([library, ...others].some((each) => each.status === "rejected")) this.plan(isWhole ? "all" : "new", RETRY_MS);
    else if (this.wanted) this.plan(this.wanted);
  }

  set(changed) {
    this.settings = { ...this.settings, ...changed };
    writeSettings(this.settings);
    this.draw();
  }

  pin(key) {
    if (!this.pinned.delete(key)) this.pinned.add(key);
    writePinned(this.pinned);
    this.draw();
  }

  // Returns what is wrong; nothing where the run is drawn.
  async compare({ id, name }) {
    if (this.runs.some((run) => run.id === id)) return `“${name}” is shown already.`;
    if (this.runs.length > MOST_COMPARED) return `${MOST_COMPARED} other runs fit here; the compare page takes 20.`;
    const run = new Run(this.api, { id, name });
    const isRead = await run.update({ isWhole: true }).then(() => !run.isGone, () => false);
    if (!isRead) return `“${name}” cannot be read: it may have been deleted.`;
    if (this.isEnded) return "";
    if (this.runs.some((each) => each.id === id)) return ""; // by another press, meanwhile
    this.runs.push(run);
    this.draw();
    this.showCompared();
    return "";
  }

  showCompared() {
    const items = this.runs.slice(1).map((run) => {
      const leave = () => {
        this.runs = this.runs.filter((each) => each !== run);
        this.draw();
        this.showCompared();
        document.getElementById("curve-compare-button")?.focus();
      };
      return el("li", {}, el("span", { title: run.name }, run.name), el("button", { type: "button", class: "quiet small", "aria-label": `Do not compare with ${run.name}`, onclick: leave }, "✕"));
    });
    this.compared.replaceChildren(...items);
    this.compared.hidden = items.length === 0;
  }

  // One chart over the whole width, or none.
  widen(chosen) {
    for (const chart of this.charts.values()) {
      const isWide = chart.element.classList.contains("wide");
      if (isWide || chart === chosen) chart.widen(chart === chosen && !isWide);
      if (chart === chosen) chart.element.scrollIntoView({ block: "nearest" });
    }
  }

  isShown(group) {
    return this.pinned.has(group.key) || (this.settings.chosen[group.key] ?? group.isUsual);
  }

  draw() {
    if (!this.Chart) return; // it is drawn when the library is here
    const groups = groupsOf(new Set(this.runs.flatMap((run) => [...run.curves.keys()])), { isApart: this.isEqual });
    const shown = groups.filter((group) => this.isShown(group));
    shown.sort((a, b) => Number(this.pinned.has(b.key)) - Number(this.pinned.has(a.key)));
    this.#showChoices(groups);
    if (groups.length) this.waiting.remove?.();
    for (const [key, chart] of this.charts) {
      if (shown.some((group) => group.key === key)) continue;
      chart.end();
      chart.element.remove();
      this.charts.delete(key);
    }
    // Nobody counts the epochs of a program: its curves go by steps.
    const hasEpochs = this.runs.some((run) => run.stepsPerEpoch > 0);
    const x = this.settings.x === "epoch" && !hasEpochs ? "step" : this.settings.x;
    const settings = { ...this.settings, x, isEqual: this.isEqual };
    showEpochs(this.tools, hasEpochs, x);
    shown.forEach((group, number) => {
      let chart = this.charts.get(group.key);
      if (!chart) {
        chart = new this.Chart(group, { widen: (each) => this.widen(each) });
        this.charts.set(group.key, chart);
      }
      if (this.place.children[number] !== chart.element) this.place.insertBefore(chart.element, this.place.children[number] ?? null);
      chart.draw(group, this.runs, settings);
    });
    const points = Math.max(0, ...[...this.runs[0].curves.values()].map((curve) => curve.steps.length));
    this.element.dataset.points = String(points);
    if (points) markOnce("curves drawn");
  }

  // The page may bring an event later than its points.
  #followMarks() {
    const marks = marksText();
    if (marks === this.marks) return;
    this.marks = marks;
    this.draw();
  }

  #showChoices(groups) {
    const state = JSON.stringify([groups.map((group) => group.key), [...this.pinned]]);
    if (this.choices.dataset.state === state) return;
    this.choices.dataset.state = state;
    const held = document.activeElement?.id;
    const choose = (key, isOn) => {
      if (!isOn && this.pinned.delete(key)) writePinned(this.pinned);
      this.set({ chosen: { ...this.settings.chosen, [key]: isOn } });
    };
    const isPinned = (group) => this.pinned.has(group.key);
    this.choices.replaceChildren(...chooserOf(groups, { isShown: (group) => this.isShown(group), isPinned, choose, pin: (key) => this.pin(key) }));
    if (held) document.getElementById(held)?.focus();
  }
}

export function mount(element) {
  return new Curves(element).start();
}

export { mountLearningRate };
bring({ curves: mount, "learning-rate": mountLearningRate });
