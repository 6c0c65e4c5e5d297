// The live curves of a job: charts by metric, in step with the notices of the page. `data-job` names the one whose page
// it is; `data-runs`, instead, several that are equals: each curve gets its own chart, with a line for each run.
//
// The library that draws comes while the points are asked for: its beginning takes longer than all the rest, and the
// page can be used meanwhile.
import { brought } from "../brought.js";
import { el } from "./curves/dom.js";
import { groupsOf } from "./curves/groups.js";
import { readPinned, readSettings, writePinned, writeSettings } from "./curves/memory.js";
import { Run } from "./curves/run.js";
import { MOST_COMPARED, chooserOf, comparerOf, toolsOf } from "./curves/tools.js";
import { mountLearningRate } from "./learning-rate.js";

const EVERY_MS = 1000;
const RETRY_MS = 3000;

class Curves {
  constructor(element) {
    this.element = element;
    this.api = element.dataset.api;
    this.isEqual = Boolean(element.dataset.runs);
    const named = this.isEqual ? JSON.parse(element.dataset.runs) : [JSON.parse(element.dataset.job)];
    this.runs = named.map((each) => new Run(this.api, each));
    this.settings = readSettings();
    this.pinned = readPinned();
    this.charts = new Map();
    this.Chart = null;
    this.wanted = "";
    this.isBusy = false;
    this.timer = 0;
    this.asked = -Infinity; // the first time, at once
    this.marks = document.getElementById("job-metrics")?.dataset.marks ?? "";
    this.compared = el("ul", { class: "curve-runs", "aria-label": "Compared runs" });
    this.choices = el("div");
    this.more = el("details", { class: "curve-more", hidden: true }, el("summary", {}, "Choose curves"), this.choices);
    this.place = el("div", { class: "curve-charts" });
    const comparer = this.isEqual ? [] : [comparerOf(this.api, this.runs[0].id, JSON.parse(element.dataset.parents), (run) => this.compare(run)), this.compared];
    element.replaceChildren(toolsOf(this.settings, (changed) => this.set(changed)), ...comparer, this.more, this.place);
  }

  start() {
    const told = (event) => this.plan(event.detail?.kind === "reload" ? "all" : "new");
    const swapped = () => this.#followMarks();
    const themed = () => this.charts.forEach((chart) => chart.plot && chart.redraw());
    const dark = matchMedia("(prefers-color-scheme: dark)");
    // The page listens before it reads, so that nothing falls between the two.
    document.body.addEventListener("notice-job", told);
    document.addEventListener("ziggurat:theme", themed);
    document.addEventListener("htmx:after:swap", swapped);
    dark.addEventListener("change", themed);
    this.plan("all");
    return () => {
      clearTimeout(this.timer);
      document.body.removeEventListener("notice-job", told);
      document.removeEventListener("ziggurat:theme", themed);
      document.removeEventListener("htmx:after:swap", swapped);
      dark.removeEventListener("change", themed);
      this.charts.forEach((chart) => chart.end());
    };
  }

  // Asks at most once a second, and once more where news came meanwhile.
  plan(what, wait = 0) {
    if (this.wanted !== "all") this.wanted = what;
    if (this.isBusy) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.update(), Math.max(wait, this.asked + EVERY_MS - performance.now(), 0));
  }

  async update() {
    const isWhole = this.wanted === "all";
    this.wanted = "";
    this.isBusy = true;
    this.asked = performance.now();
    let retry = "";
    try {
      const asked = this.runs.filter((run, number) => number === 0 || run.isActive || isWhole);
      const [{ Chart }, ...others] = await Promise.all([import("./curves/chart.js"), ...asked.map((run) => run.update({ isWhole }))]);
      this.Chart = Chart;
      if (others.some(Boolean)) this.draw();
    } catch {
      retry = isWhole ? "all" : "new"; // the server is away, or a curve was cut at this moment
    }
    this.isBusy = false;
    if (retry) this.plan(retry, RETRY_MS);
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
    this.charts.get(key)?.end();
    this.charts.get(key)?.element.remove();
    this.charts.delete(key);
    this.draw();
    this.charts.get(key)?.pinButton.focus();
  }

  async compare({ id, name }) {
    if (this.runs.length > MOST_COMPARED || this.runs.some((run) => run.id === id)) return;
    const run = new Run(this.api, { id, name });
    await run.update({ isWhole: true }).catch(() => {});
    this.runs.push(run);
    this.draw();
    this.showCompared();
  }

  showCompared() {
    const items = this.runs.slice(1).map((run) => {
      const leave = () => {
        this.runs = this.runs.filter((each) => each !== run);
        this.draw();
        this.showCompared();
      };
      return el("li", {}, el("span", { title: run.name }, run.name), el("button", { type: "button", class: "quiet small", "aria-label": `Do not compare with ${run.name}`, onclick: leave }, "✕"));
    });
    this.compared.replaceChildren(...items);
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
    for (const [key, chart] of this.charts) {
      if (shown.some((group) => group.key === key)) continue;
      chart.end();
      chart.element.remove();
      this.charts.delete(key);
    }
    shown.forEach((group, number) => {
      let chart = this.charts.get(group.key);
      if (!chart) {
        chart = new this.Chart(group, { isPinned: this.pinned.has(group.key), pin: (key) => this.pin(key) });
        this.charts.set(group.key, chart);
      }
      if (this.place.children[number] !== chart.element) this.place.insertBefore(chart.element, this.place.children[number] ?? null);
      chart.draw(group, this.runs, { ...this.settings, isEqual: this.isEqual });
    });
    this.element.dataset.points = String(Math.max(0, ...[...this.runs[0].curves.values()].map((curve) => curve.steps.length)));
  }

  // The page may bring an event later than its points.
  #followMarks() {
    const marks = document.getElementById("job-metrics")?.dataset.marks ?? "";
    if (marks === this.marks) return;
    this.marks = marks;
    this.draw();
  }

  #showChoices(groups) {
    const names = groups.map((group) => group.key).join("\n");
    if (this.more.dataset.names === names) return;
    this.more.dataset.names = names;
    this.more.hidden = groups.length === 0;
    const choose = (key, isOn) => {
      if (!isOn && this.pinned.delete(key)) writePinned(this.pinned);
      this.set({ chosen: { ...this.settings.chosen, [key]: isOn } });
    };
    this.choices.replaceChildren(...chooserOf(groups, (group) => this.isShown(group), choose));
  }
}

export function mount(element) {
  return new Curves(element).start();
}

export { mountLearningRate };
Object.assign(brought, { curves: mount, "learning-rate": mountLearningRate });
