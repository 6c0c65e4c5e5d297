// Loads islands: parts of a page that need more than HTML. `<div data-island="curves">` is handed to islands/curves.js,
// whose `mount(element)` may return a function that ends it.
const loaders = {
  charts: () => import("./islands/charts.js"),
  curves: () => import("./islands/curves.js"),
  editor: () => import("./islands/editor.js"),
  dialog: () => import("./islands/dialog.js"),
  focus: () => import("./islands/focus.js"),
  explorer: () => import("./islands/explorer.js"),
  graph: () => import("./islands/graph.js"),
  home: () => import("./islands/home.js"),
  queue: () => import("./islands/queue.js"),
  "live-form": () => import("./islands/live-form.js"),
  upload: () => import("./islands/upload.js"),
  "learning-rate": () => import("./islands/learning-rate.js"),
  "picture-drop": () => import("./islands/picture-drop.js"),
  threshold: () => import("./islands/threshold.js"),
};
const mounted = new Map();

async function mount(element) {
  if (mounted.has(element)) return;
  const name = element.dataset.island;
  const load = loaders[name];
  if (!load) throw new Error(`There is no island called ${name}.`);
  mounted.set(element, null);
  const module = await load();
  if (!element.isConnected) {
    mounted.delete(element);
    return;
  }
  mounted.set(element, module.mount(element) ?? (() => {}));
  element.dataset.mounted = "true";
}

function sweep() {
  for (const [element, end] of mounted) {
    if (!element.isConnected && end) {
      end();
      mounted.delete(element);
    }
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
  new MutationObserver(plan).observe(document.body, { childList: true, subtree: true });
  sweep();
}
