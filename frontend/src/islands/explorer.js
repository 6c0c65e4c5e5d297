// The explorer of a dataset: strength of masks, boxes on and off, arrow keys, how many samples are chosen, and its pages.
import htmx from "../htmx-setup.js";
import { pressedLink } from "../links.js";

const STRENGTH = "ziggurat.mask-strength";

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

// A slider that acts on every mask of the page; without a script they have the usual strength.
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
  const all = place.querySelector("#everything")?.checked;
  const chosen = place.querySelectorAll('input[name="samples"]:checked').length;
  said.textContent = all ? "all" : chosen ? `${chosen} chosen` : "none is chosen";
}

function show(place) {
  showMasks(place);
  const marks = place.querySelector("#show-marks");
  if (marks) marks.parentElement.hidden = false;
  showCount(place);
}

function moved(place, { target }) {
  if (target.id === "mask-strength") place.style.setProperty("--mask-strength", String(target.value / 100));
}

function changed(place, { target }) {
  if (target.id === "mask-strength") remember(target.value);
  if (target.id === "show-marks") place.classList.toggle("hide-marks", !target.checked);
  showCount(place);
}

// Another page of the list comes in the place of this one; what is typed beside it stays.
function followed(event) {
  const link = pressedLink(event, "a[data-go]");
  if (link) htmx.ajax("GET", link.getAttribute("href"), { source: "#found", target: "#found", swap: "innerHTML" });
}

// The list begins at its heading: there the eye and the keyboard go on.
function swapped(place, { detail }) {
  show(place);
  if (detail?.ctx?.target?.id === "found") document.getElementById("found-title")?.focus();
}

// Arrows go from image to image, x chooses; on the page of one sample, left and right go to its neighbors.
function pressed(place, event) {
  if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest("input, select, textarea, summary, [role=region]")) return;
  const steps = [...place.querySelectorAll("[data-step]")];
  if (!steps.length) {
    const rel = { ArrowLeft: "prev", ArrowRight: "next" }[event.key];
    const link = rel && place.querySelector(`a[rel=${rel}]`);
    if (link) link.click();
    return;
  }
  const at = steps.indexOf(event.target.closest("[data-step]"));
  if (at < 0) return;
  if (event.key === "x") {
    event.target.closest("li, tr").querySelector('input[name="samples"]')?.click();
    return;
  }
  const columns = steps.filter((step) => step.getBoundingClientRect().top === steps[0].getBoundingClientRect().top).length;
  const move = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[event.key];
  const target = move && steps[at + move];
  if (!target) return;
  event.preventDefault();
  target.focus();
}

export function mount(place) {
  const pressing = (event) => pressed(place, event);
  const swapping = (event) => swapped(place, event);
  place.addEventListener("input", (event) => moved(place, event));
  place.addEventListener("change", (event) => changed(place, event));
  place.addEventListener("click", followed);
  document.addEventListener("keydown", pressing);
  document.addEventListener("htmx:after:swap", swapping);
  show(place);
  return () => {
    document.removeEventListener("keydown", pressing);
    document.removeEventListener("htmx:after:swap", swapping);
  };
}
