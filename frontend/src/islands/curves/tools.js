// The controls of the charts: smoothing, axes, runs to compare with, and which charts are shown.
import { el, icon } from "./dom.js";

export const MOST_COMPARED = 4;
const X_NAMES = { epoch: "Epoch", step: "Step", time: "Time" };

export function toolsOf(settings, change) {
  const text = (value) => Number(value).toFixed(2);
  const shown = el("output", { for: "curve-smoothing", class: "bold" }, text(settings.smoothing));
  const smoothing = el("input", {
    type: "range", id: "curve-smoothing", min: 0, max: 0.99, step: 0.01, value: settings.smoothing, title: "Average over neighboring points; 0 is off. Recorded values stay visible behind, and curves of fewer than 40 points are drawn as they are.",
    oninput: (event) => {
      shown.textContent = text(event.target.value);
      change({ smoothing: Number(event.target.value) });
    },
  });
  const choices = Object.entries(X_NAMES).map(([value, name]) => {
    const box = el("input", { type: "radio", name: "curve-x", id: `curve-x-${value}`, value, checked: value === settings.x, onchange: () => change({ x: value }) });
    return el("label", {}, box, name);
  });
  const log = el("input", { type: "checkbox", role: "switch", class: "switch", id: "curve-log", checked: settings.isLog, onchange: (event) => change({ isLog: event.target.checked }) });
  return [
    el("span", { class: "curve-smooth" }, el("label", { for: "curve-smoothing" }, "Smoothing"), smoothing, shown),
    el("span", { class: "segmented small", role: "radiogroup", "aria-label": "X axis" }, ...choices),
    el("span", { class: "curve-log" }, log, el("label", { for: "curve-log" }, "Log scale")),
  ];
}

// The choice of epochs is there if some run has them.
export function showEpochs(tools, hasEpochs, x) {
  const epoch = tools?.querySelector("#curve-x-epoch");
  if (!epoch || epoch.parentElement.hidden !== hasEpochs) return;
  epoch.parentElement.hidden = !hasEpochs;
  tools.querySelector(`#curve-x-${x}`).checked = true;
}

// A button with what it opens, below it.
export function menuOf(id, name, picture, look, ...content) {
  const button = el("button", { type: "button", id: `${id}-button`, class: `small ${look}`, popovertarget: id, "aria-haspopup": "dialog" }, icon(picture), name);
  const place = el("div", { id, popover: "", class: "menu below-end curve-menu", role: "dialog", "aria-label": name }, ...content);
  place.addEventListener("toggle", ({ newState }) => newState === "open" && place.querySelector("input, button")?.focus());
  return [button, place];
}

// Which charts are shown, and which come first on the page of every job.
export function chooserOf(groups, { isShown, isPinned, choose, pin }) {
  return groups.map((group, number) => {
    const id = `curve-choice-${number}`;
    const box = el("input", { type: "checkbox", id, checked: isShown(group), onchange: (event) => choose(group.key, event.target.checked) });
    const held = isPinned(group);
    const star = el("button", { type: "button", id: `curve-pin-${number}`, class: "icon-button", "aria-pressed": String(held), "aria-label": `Pin ${group.title}`, title: "Pinned charts come first, on every job", onclick: () => pin(group.key) }, icon("star"));
    return el("div", { class: "curve-choice" }, box, el("label", { for: id, title: group.tags.join(", ") }, group.title), star);
  });
}

// A field that finds runs by what is typed; `add` gets {id, name}, and returns what is wrong with it, or nothing.
export function comparerOf(api, own, parents, add) {
  const found = new Map();
  const list = el("datalist", { id: "curve-runs-found" });
  const problem = el("p", { class: "problem", id: "curve-run-problem", role: "alert", hidden: true });
  let timer = 0;
  let asked = 0;
  const tell = (wrong = "") => {
    problem.textContent = wrong;
    problem.hidden = !wrong;
    field.setAttribute("aria-invalid", String(Boolean(wrong)));
  };
  const look = async (text) => {
    const mine = ++asked;
    const query = new URLSearchParams({ kind: "train", text, limit: 20, sort: "-created" });
    const answer = await fetch(`${api}?${query}`, { headers: { Accept: "application/json" } });
    if (!answer.ok) return;
    const { jobs } = await answer.json();
    const others = jobs.filter((job) => job.id !== own).map(({ id, name }) => [`${name} (${id})`, { id, name }]);
    for (const [value, run] of others) found.set(value, run);
    if (mine === asked) list.replaceChildren(...others.map(([value]) => el("option", { value }))); // not of earlier letters
  };
  const field = el("input", {
    id: "curve-run", list: "curve-runs-found", placeholder: "Name of a run", autocomplete: "off", "aria-describedby": "curve-run-problem",
    onfocus: () => look(field.value).catch(() => {}),
    oninput: (event) => {
      clearTimeout(timer);
      tell();
      const text = event.target.value;
      if (found.has(text)) take();
      else timer = setTimeout(() => look(text).catch(() => {}), 250);
    },
    onkeydown: (event) => event.key === "Enter" && take(),
  });
  const named = (text) => found.get(text) ?? [...found.values()].find((each) => each.name === text || each.id === text);
  const take = async () => {
    const text = field.value.trim();
    if (text && !named(text)) await look(text).catch(() => {}); // Enter may come before the list
    const run = named(text);
    if (!run) return tell(text ? `No run is called “${text}”. Choose one from the list.` : "Type the name of a run.");
    const wrong = await add(run);
    tell(wrong);
    if (!wrong) field.value = "";
  };
  const quick = parents.map((each) => el("button", { type: "button", class: "small", title: each.name, onclick: async () => tell(await add(each)) }, "Add the parent"));
  return [el("label", { for: "curve-run" }, "Compare with"), el("div", { class: "row" }, field, list, el("button", { type: "button", class: "small", onclick: take }, "Add")), problem, ...quick];
}
