// The controls above the charts: smoothing, axes, which curves, and runs to compare with.
import { el } from "./dom.js";

export const MOST_COMPARED = 4;

export function toolsOf(settings, change) {
  const shown = el("output", { for: "curve-smoothing" }, String(settings.smoothing));
  const smoothing = el("input", {
    type: "range", id: "curve-smoothing", min: 0, max: 0.99, step: 0.01, value: settings.smoothing, title: "Averages over neighbors; the values as they are stay faint behind. 0 is off.",
    oninput: (event) => {
      shown.textContent = event.target.value;
      change({ smoothing: Number(event.target.value) });
    },
  });
  const log = el("input", { type: "checkbox", id: "curve-log", checked: settings.isLog, onchange: (event) => change({ isLog: event.target.checked }) });
  const options = Object.entries({ step: "Steps", epoch: "Epochs", time: "Time" }).map(([value, text]) => el("option", { value, selected: value === settings.x }, text));
  const x = el("select", { id: "curve-x", onchange: (event) => change({ x: event.target.value }) }, ...options);
  return el("div", { class: "curve-tools" }, el("label", {}, "Smoothing", smoothing, shown), el("label", {}, log, "Logarithmic"), el("label", {}, "Along", x));
}

export function chooserOf(groups, isShown, choose) {
  const boxes = groups.map((group, number) => {
    const id = `curve-choice-${number}`;
    const box = el("input", { type: "checkbox", id, checked: isShown(group), onchange: (event) => choose(group.key, event.target.checked) });
    return el("label", { for: id }, box, group.title === group.key ? group.key : `${group.title} (${group.tags.join(", ")})`);
  });
  return boxes;
}

// A field that finds runs by what is typed; `add` gets {id, name}.
export function comparerOf(api, own, parents, add) {
  const found = new Map();
  const list = el("datalist", { id: "curve-runs-found" });
  let timer = 0;
  const look = async (text) => {
    const query = new URLSearchParams({ kind: "train", text, limit: 20, sort: "-created" });
    const answer = await fetch(`${api}?${query}`, { headers: { Accept: "application/json" } });
    if (!answer.ok) return;
    const { jobs } = await answer.json();
    for (const job of jobs) if (job.id !== own) found.set(`${job.name} (${job.id})`, { id: job.id, name: job.name });
    list.replaceChildren(...jobs.filter((job) => job.id !== own).map((job) => el("option", { value: `${job.name} (${job.id})` })));
  };
  const field = el("input", {
    id: "curve-run", list: "curve-runs-found", placeholder: "Name of a run", autocomplete: "off",
    onfocus: () => look("").catch(() => {}),
    oninput: (event) => {
      clearTimeout(timer);
      const text = event.target.value;
      if (found.has(text)) take();
      else timer = setTimeout(() => look(text).catch(() => {}), 250);
    },
    onkeydown: (event) => event.key === "Enter" && take(),
  });
  const take = () => {
    const run = found.get(field.value) ?? [...found.values()].find((each) => each.name === field.value || each.id === field.value);
    if (!run) return;
    add(run);
    field.value = "";
  };
  const quick = parents.map((each) => el("button", { type: "button", class: "small", title: each.name, onclick: () => add(each) }, "Compare with parent"));
  return el("div", { class: "curve-tools" }, el("label", {}, "Compare with", field, list), el("button", { type: "button", class: "small", onclick: take }, "Add"), ...quick);
}
