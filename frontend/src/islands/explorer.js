// The explorer of a dataset and the page of one sample: keys, the drawer, corrections that are collected until they
// become a version, the strength of masks, and pages of the list. Without it all of this is links and forms.
import htmx from "../htmx-setup.js";
import { areLettersOff } from "../keys.js";
import { pressedLink } from "../links.js";
import { changesOf } from "./explorer/changes.js";

const STRENGTH = "ziggurat.mask-strength";
const MOST_NAMED = 5;
const WIDE = "(min-width: 62.01rem)"; // from here on there is a drawer

function remembered() {
  try {
    return Number(localStorage.getItem(STRENGTH) ?? 55);
  } catch {
    return 55;
  }
}

function remember(value) {
  try {
    localStorage.setItem(STRENGTH, value);
  } catch {
    // Then it holds for this page alone.
  }
}

// A slider that acts on every mask of the page; without a script they have the default strength.
function showMasks(place) {
  const slider = place.querySelector("#mask-strength");
  if (!slider) return;
  slider.parentElement.hidden = false;
  slider.value = remembered();
  place.style.setProperty("--mask-strength", String(slider.value / 100));
}

function showCount(place) {
  const said = place.querySelector("#chosen-count");
  if (!said) return;
  said.dataset.idle ??= said.textContent;
  const all = place.querySelector("#everything")?.checked;
  const chosen = place.querySelectorAll('input[name="samples"]:checked').length;
  said.textContent = all ? "all selected" : chosen ? `${chosen} selected` : said.dataset.idle;
}

function moved(place, { target }) {
  if (target.id === "mask-strength") place.style.setProperty("--mask-strength", String(target.value / 100));
}

function changed(place, { target }) {
  if (target.id === "mask-strength") remember(target.value);
  if (target.id === "show-marks") place.classList.toggle("hide-marks", !target.checked);
  if (target.matches("[data-auto]")) target.form.requestSubmit();
  showCount(place);
}

function steps(place) {
  return [...place.querySelectorAll("[data-step]")];
}

function itemOf(step) {
  return step?.closest("[data-place]");
}

function currentStep(place) {
  const focused = document.activeElement?.closest?.("[data-step]");
  return focused ?? place.querySelector(".current [data-step]");
}

// Samples that a key acts on: those that are selected, else the one that is shown.
function meant(place) {
  const selected = [...place.querySelectorAll('[data-place] input[name="samples"]:checked')].map((box) => box.value);
  if (selected.length) return selected;
  const step = currentStep(place);
  if (step) return [itemOf(step).dataset.place];
  const single = place.querySelector("[data-correction] input[name=single]");
  return single ? [single.value] : [];
}

function show(place, step) {
  for (const other of place.querySelectorAll(".current")) other.classList.remove("current");
  itemOf(step)?.classList.add("current");
}

// The drawer has one request at a time: while a key is held, the sample that counts is the last one.
let opening;

function open(place, href, step) {
  if (step) show(place, step);
  clearTimeout(opening);
  opening = setTimeout(() => htmx.ajax("GET", href, { source: "#drawer", target: "#drawer", swap: "innerHTML" }), 40);
}

function hasDrawer(place) {
  return place.querySelector("#drawer") && matchMedia(WIDE).matches;
}

function go(place, step) {
  step.focus();
  if (hasDrawer(place)) open(place, step.getAttribute("href"), step);
}

function followed(place, event) {
  const page = pressedLink(event, "a[data-go]");
  if (page) {
    htmx.ajax("GET", page.getAttribute("href"), { source: "#found", target: "#found", swap: "innerHTML" });
    return;
  }
  if (!hasDrawer(place)) return;
  const link = pressedLink(event, "a[data-step], a[data-drawer]");
  if (!link) return;
  if (link.matches("[data-step]")) open(place, link.getAttribute("href"), link);
  else beside(place, link.rel === "prev" ? -1 : 1) || open(place, link.getAttribute("href"));
}

// Goes to another sample of the grid; false where there is none on this page.
function beside(place, by) {
  const all = steps(place);
  const at = all.indexOf(place.querySelector(".current [data-step]"));
  const target = at < 0 ? undefined : all[at + by];
  if (target) go(place, target);
  return Boolean(target);
}

function arrow(place, event) {
  const all = steps(place);
  if (!all.length) {
    const rel = { ArrowLeft: "prev", ArrowRight: "next" }[event.key];
    const link = rel && place.querySelector(`.sample-head a[rel=${rel}]`);
    if (link) link.click();
    return;
  }
  const at = all.indexOf(currentStep(place));
  const columns = all.filter((step) => step.getBoundingClientRect().top === all[0].getBoundingClientRect().top).length;
  const move = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[event.key];
  const target = at < 0 ? all[0] : all[at + move];
  if (!target) return;
  event.preventDefault();
  go(place, target);
}

function select(place, event) {
  const box = itemOf(currentStep(place))?.querySelector('input[name="samples"]');
  if (!box) return;
  event.preventDefault();
  box.click();
}

// Classes that are digits themselves keep them: 8 sets the label 8, and not the eighth label.
function labelOfKey(place, key) {
  const labels = JSON.parse(place.dataset.labels || "[]");
  const isOwn = labels.every(([, text]) => /^[0-9]$/.test(text));
  const at = isOwn ? labels.findIndex(([, text]) => text === key) : (Number(key) + 9) % 10;
  return labels.length <= 10 && labels[at] ? labels[at][0] : null;
}

function correct(place, changes, event) {
  const samples = meant(place);
  if (!samples.length || !place.dataset.labels) return;
  if (/^[0-9]$/.test(event.key)) {
    const label = place.dataset.canRelabel === "true" ? labelOfKey(place, event.key) : null;
    if (label !== null) changes.set(samples, label);
  } else if (event.key === "x") changes.toggleExcluded(samples);
  else if (event.key === "u") changes.undo();
  else if (event.key === "l") {
    const field = place.querySelector("[data-label-field]");
    if (!field) return;
    field.focus();
    field.select();
  } else return;
  event.preventDefault();
}

function pressed(place, changes, event) {
  if (event.altKey || event.ctrlKey || event.metaKey || event.defaultPrevented) return;
  const field = event.target.closest("input:not([type=checkbox]), select, textarea");
  if (field) {
    if (field.matches("[data-label-field]") && event.key === "Escape") (currentStep(place) ?? field).focus();
    return;
  }
  if (event.target.closest("summary, [role=region], [popover], dialog, .top, .tabs")) return;
  if (event.key.startsWith("Arrow")) arrow(place, event);
  else if (event.key === " " && !event.target.closest("button, input")) select(place, event);
  else if (!areLettersOff()) correct(place, changes, event);
}

// Buttons of the drawer, and of the page of a sample, collect what they would send.
function asked(place, changes, event) {
  const form = event.target.closest("[data-correction]");
  const button = event.submitter;
  if (!form || !button || !place.dataset.labels) return;
  const sample = form.elements.single.value;
  const selected = meant(place);
  const samples = selected.includes(sample) ? selected : [sample];
  event.preventDefault();
  if (button.hasAttribute("data-exclude")) changes.toggleExcluded(samples);
  else if (button.dataset.setLabel !== undefined) changes.set(samples, button.dataset.setLabel);
  else typedLabel(place, changes, form, samples);
}

// What was typed stands for the class of that name, or for the only one that begins so.
function typedLabel(place, changes, form, samples) {
  const field = form.querySelector("[data-label-field]");
  const typed = field.value.trim().toLowerCase();
  const labels = JSON.parse(place.dataset.labels);
  const begun = typed ? labels.filter(([, text]) => text.toLowerCase().startsWith(typed)) : [];
  const found = begun.find(([, text]) => text.toLowerCase() === typed) ?? (begun.length === 1 ? begun[0] : null);
  if (!found) {
    const names = begun.slice(0, MOST_NAMED).map(([, text]) => text).join(", ");
    const several = `${begun.length} classes begin with "${field.value.trim()}": ${names}${begun.length > MOST_NAMED ? ", …" : ""}. Type more letters.`;
    field.setCustomValidity(!typed ? "Type the name of a class." : begun.length ? several : `No class begins with "${field.value.trim()}".`);
    field.reportValidity();
    return;
  }
  changes.set(samples, found[0]);
  field.value = "";
  (currentStep(place) ?? field).focus();
}

// The list begins at its heading: there the eye and the keyboard go on.
function swapped(place, changes, { detail }) {
  showMasks(place);
  showCount(place);
  changes.show();
  if (detail?.ctx?.target?.id === "found") {
    document.getElementById("found-title")?.focus();
    const first = place.querySelector("[data-step]");
    if (first && hasDrawer(place)) open(place, first.getAttribute("href"), first);
  }
}

export function mount(place) {
  const changes = changesOf(place);
  const pressing = (event) => pressed(place, changes, event);
  const swapping = (event) => swapped(place, changes, event);
  place.addEventListener("input", (event) => {
    event.target.setCustomValidity?.("");
    moved(place, event);
  });
  place.addEventListener("change", (event) => changed(place, event));
  place.addEventListener("click", (event) => followed(place, event));
  place.addEventListener("submit", (event) => asked(place, changes, event));
  document.addEventListener("keydown", pressing);
  document.addEventListener("htmx:after:swap", swapping);
  const marks = place.querySelector("#show-marks");
  if (marks) marks.parentElement.hidden = false;
  const fold = place.querySelector("#facet-fold");
  if (fold && matchMedia("(max-width: 40rem)").matches) fold.open = false;
  showMasks(place);
  showCount(place);
  const first = place.querySelector("[data-step]");
  if (first && hasDrawer(place)) show(place, first);
  return () => {
    document.removeEventListener("keydown", pressing);
    document.removeEventListener("htmx:after:swap", swapping);
    changes.end();
  };
}
