// Loads islands: parts of a page that need more than HTML. `<div data-island="curves">` is handed to islands/curves.js,
// whose `mount(element)` may return a function that ends it. Small ones come with the script of every page, so that they
// are at work before the first paint; large ones are loaded by the pages that have them, or brought by them.
import built from "built-islands";
import { BROUGHT, brought } from "./brought.js";
import { mount as dialog } from "./islands/dialog.js";
import { mount as explorer } from "./islands/explorer.js";
import { mount as focus } from "./islands/focus.js";
import { mount as home } from "./islands/home.js";
import { mount as liveForm } from "./islands/live-form.js";
import { mount as marks } from "./islands/marks.js";
import { mount as machineLoad } from "./islands/machine-load.js";
import { mount as pictureDrop } from "./islands/picture-drop.js";
import { mount as queue } from "./islands/queue.js";
import { mount as samplePredictions } from "./islands/sample-predictions.js";
import { mount as threshold } from "./islands/threshold.js";
import { markOnce } from "./timeline.js";

const small = {
  dialog,
  explorer,
  focus,
  home,
  "live-form": liveForm,
  "machine-load": machineLoad,
  marks,
  "picture-drop": pictureDrop,
  queue,
  "sample-predictions": samplePredictions,
  threshold,
};
const loaders = {
  ...built,
  "learning-rate": async () => ({ mount: (await built.curves()).mountLearningRate }), // always beside curves
};
const mounted = new Map();

// The largest come only when they are about to be seen: behind a tab that nobody opens, they would cost for nothing.
const NEAR = "400px";
const LARGE = ["charts", "editor", "graph"]; // or what says data-when="seen"
const AWAITED = `[data-island]:not([data-mounted], [data-when], ${LARGE.map((name) => `[data-island=${name}]`).join()})`;
const near = new IntersectionObserver(
  (seen) => {
    for (const { target, isIntersecting } of seen) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      load(target);
    }
  },
  { rootMargin: NEAR },
);

let isStarted = false;

function markUsable() {
  if (isStarted && !document.querySelector(AWAITED)) markOnce("usable");
}

// All that every page has is at work; islands that the page brings may still be on the way.
export function pageStarted() {
  isStarted = true;
  markUsable();
}

function begin(element, start) {
  mounted.set(element, start(element) ?? (() => {}));
  element.setAttribute("data-mounted", "true");
  markUsable();
}

async function mount(element) {
  if (mounted.get(element)) return;
  const name = element.getAttribute("data-island"); // a form with a field of that name hides `dataset`
  const known = small[name] ?? brought[name];
  if (known) {
    begin(element, known);
    return;
  }
  if (mounted.has(element)) return; // its script is on the way
  if (!loaders[name]) throw new Error(`There is no island called ${name}.`);
  mounted.set(element, null);
  if (LARGE.includes(name) || element.dataset.when === "seen") near.observe(element);
  else await load(element);
}

async function load(element) {
  let module = null;
  try {
    module = await loaders[element.getAttribute("data-island")]();
  } catch (error) {
    mounted.delete(element); // the next change of the page asks for it again
    throw error;
  }
  if (mounted.get(element)) return; // the page brought it meanwhile
  if (element.isConnected) begin(element, module.mount);
  else mounted.delete(element);
}

function sweep() {
  for (const [element, end] of mounted) {
    if (element.isConnected) continue;
    near.unobserve(element);
    if (!end) continue; // its script is on the way, and looks whether it is still there
    end();
    mounted.delete(element);
  }
  for (const element of document.querySelectorAll("[data-island]")) mount(element);
}

export function startIslands() {
  let isPlanned = false;
  const plan = () => {
    if (isPlanned) return;
    isPlanned = true;
    queueMicrotask(() => {
      isPlanned = false;
      sweep();
    });
  };
  document.addEventListener(BROUGHT, sweep);
  new MutationObserver(plan).observe(document.body, { childList: true, subtree: true });
  sweep();
}
