// A list of jobs: it is asked for again when a job on it has news, says how many jobs are selected, and completes names
// in the filter box.
//
// Its links and menus are listened to in one place: htmx would prepare hundreds of them before the page can be used.
import htmx from "../htmx-setup.js";
import { pressedLink } from "../links.js";
import { completeNames } from "./home/names.js";
import { openMenu, prepareMenu } from "./row-menu.js";

const ALWAYS = ["added", "deleted", "state", "changed", "reload"];

// At once, and again after the last of several: an answer that was on its way when something changed is out of date.
const EVERY_MS = 2000;
const BUSY_MS = 150;
const planned = new Map();

function tellSoon(id, name) {
  const { at = -EVERY_MS, timer = 0 } = planned.get(name) ?? {};
  if (timer) return;
  const wait = Math.max(0, at + EVERY_MS - performance.now());
  const tell = () => {
    const part = document.getElementById(id);
    // An answer to a person comes first: news would be asked for by the address of before, and would undo it. So does
    // a row that is dragged.
    if (part?.dataset.dragging || part?.closest(".htmx-request") || part?.querySelector(".htmx-request")) {
      planned.set(name, { at, timer: setTimeout(tell, BUSY_MS) });
      return;
    }
    planned.set(name, { at: performance.now() });
    part?.dispatchEvent(new CustomEvent(name));
  };
  if (wait === 0) tell();
  else planned.set(name, { at, timer: setTimeout(tell, wait) });
}

function boxes() {
  return [...document.querySelectorAll('#results input[name="ids"]')];
}

function showCount() {
  const place = document.getElementById("chosen");
  if (!place) return;
  const count = boxes().filter((box) => box.checked).length;
  const all = document.getElementById("bulk-all");
  const text = all?.checked ? "All selected" : `${count} selected`;
  if (place.textContent !== text) place.textContent = text;
  const every = document.getElementById("pick-all");
  if (every) {
    every.checked = count > 0 && count === boxes().length;
    every.indeterminate = count > 0 && !every.checked;
  }
}

// The bar with the button goes away with the selection: the focus goes to the list.
function clearSelection(event) {
  event.preventDefault();
  for (const box of boxes()) box.checked = false;
  const all = document.getElementById("bulk-all");
  if (all) all.checked = false;
  showCount();
  (document.getElementById("pick-all") ?? document.getElementById("q"))?.focus();
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
    if (event.target.id === "bulk-clear") clearSelection(event);
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
  // A box that selects all others says so when they are selected, not before.
  const changed = ({ target }) => {
    setTimeout(showCount);
    if (!target.dataset?.mirrors) return;
    const other = document.getElementById(target.dataset.mirrors);
    other.value = target.value;
    other.dispatchEvent(new Event("change", { bubbles: true }));
  };
  const noticed = ({ detail }) => {
    const queue = document.getElementById("queue");
    const isKnown = (prefix) => document.getElementById(`${prefix}-${detail.id}`) !== null;
    const isAny = ALWAYS.includes(detail.kind);
    if (isAny || isKnown("row")) tellSoon("results", "home-news");
    const isQueued = queue?.querySelector(`[data-job="${CSS.escape(detail.id)}"]`);
    if (queue && (isAny || isQueued)) tellSoon("queue", "home-news-queue");
  };
  const swapped = () => {
    const another = document.getElementById("another-column");
    const shown = new URLSearchParams(location.search).getAll("column");
    if (another && shown.includes(another.value.trim())) {
      another.value = "";
      document.getElementById("columns-more").hidePopover(); // so that the new column is seen
    }
    showCount();
  };
  if (menu && !menu.dataset.isReady) {
    menu.dataset.isReady = "true";
    prepareMenu(menu);
  }
  const forget = completeNames(element);
  element.addEventListener("click", clicked);
  element.addEventListener("change", changed);
  document.addEventListener("htmx:after:swap", swapped);
  document.body.addEventListener("notice-jobs", noticed);
  showCount();
  return () => {
    forget();
    element.removeEventListener("click", clicked);
    element.removeEventListener("change", changed);
    document.removeEventListener("htmx:after:swap", swapped);
    document.body.removeEventListener("notice-jobs", noticed);
  };
}
