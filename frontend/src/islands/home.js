// The table of jobs: it is asked for again when a job on it has news, and says how many jobs are chosen.
//
// Its links and menus are listened to in one place: htmx would prepare hundreds of them before the page can be used.
import htmx from "../htmx-setup.js";
import { pressedLink } from "../links.js";
import { openMenu, prepareMenu } from "./row-menu.js";

const ALWAYS = ["added", "deleted", "state", "changed", "reload"];

function boxes() {
  return [...document.querySelectorAll('#results input[name="ids"]')];
}

function showCount() {
  const place = document.getElementById("chosen");
  if (!place) return;
  const count = boxes().filter((box) => box.checked).length;
  const all = document.getElementById("bulk-all");
  const text = all?.checked ? "All selected" : count ? `${count} selected` : "Select jobs";
  if (place.textContent !== text) place.textContent = text;
  const every = document.getElementById("pick-all");
  if (every) {
    every.checked = count > 0 && count === boxes().length;
    every.indeterminate = count > 0 && !every.checked;
  }
}

function followed(event) {
  const link = pressedLink(event, "a[data-go], a[data-menu]");
  if (!link) return;
  if (link.dataset.menu) openMenu(document.getElementById("row-menu"), link);
  // The element around the table says where the answer goes, and that a newer question takes the place of an older one.
  else htmx.ajax("GET", link.getAttribute("href"), { source: "#results > div", target: "#results", swap: "outerMorph" });
}

export function mount(element) {
  const menu = document.getElementById("row-menu");
  let last = null;
  const clicked = (event) => {
    followed(event);
    const box = event.target;
    if (box.name !== "ids") return;
    const all = boxes();
    const from = all.indexOf(last);
    // As in a list of files: with Shift, all between the last box and this one.
    if (event.shiftKey && from >= 0) {
      const [low, high] = [from, all.indexOf(box)].sort((a, b) => a - b);
      for (const each of all.slice(low, high + 1)) each.checked = box.checked;
    }
    last = box;
  };
  // A box that ticks all others says so when they are ticked, not before.
  const changed = () => setTimeout(showCount);
  const noticed = ({ detail }) => {
    const queue = document.getElementById("queue");
    const isKnown = (prefix) => document.getElementById(`${prefix}-${detail.id}`) !== null;
    const isAny = ALWAYS.includes(detail.kind);
    if (isAny || isKnown("row")) element.dispatchEvent(new CustomEvent("home-news"));
    if (queue && !queue.dataset.dragging && (isAny || isKnown("runs") || isKnown("waits"))) {
      queue.dispatchEvent(new CustomEvent("home-news-queue"));
    }
  };
  const swapped = () => {
    const another = document.getElementById("another-column");
    const shown = new URLSearchParams(location.search).getAll("column");
    if (another && shown.includes(another.value.trim())) another.value = "";
    showCount();
  };
  if (menu && !menu.dataset.isReady) {
    menu.dataset.isReady = "true";
    prepareMenu(menu);
  }
  element.addEventListener("click", clicked);
  element.addEventListener("change", changed);
  document.addEventListener("htmx:after:swap", swapped);
  document.body.addEventListener("notice-jobs", noticed);
  showCount();
  return () => {
    element.removeEventListener("click", clicked);
    element.removeEventListener("change", changed);
    document.removeEventListener("htmx:after:swap", swapped);
    document.body.removeEventListener("notice-jobs", noticed);
  };
}
