// The map of a dataset: points on a canvas, chosen by a lasso, a rectangle, a pointer or keys. The list beside it shows
// what was chosen, and works without it.
import htmx from "../htmx-setup.js";
import { areLettersOff } from "../keys.js";
import { markOnce } from "../timeline.js";
import { el } from "./curves/dom.js";
import { classColors, coloring, colorsOf, draw, MOST_RINGS, viewOf } from "./map/drawing.js";
import { cellsOf, insideOf, nearestPoint, NO_CLASS, pointBeside, pointsOf } from "./map/points.js";

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const ZOOM = 1.5;
const REACH_PX = 9;
const LEAST_PX = 5; // a shorter stroke is a click
const MOST_CORNERS = 48;
const TIP_MS = 70;
const MOST_TIPS = 200;
const MOST_BARS = 8;

export function mount(place) {
  const state = JSON.parse(place.dataset.map);
  const page = place.closest("#explorer");
  const canvas = place.querySelector("canvas");
  const named = (id) => document.getElementById(id);
  const view = viewOf(canvas);
  const list = new AbortController();
  const on = (target, name, act, options = {}) => target.addEventListener(name, act, { ...options, signal: list.signal });
  const look = { names: null, shown: null, selected: null, current: -1, area: [], outcomes: null };
  let points = null;
  let colors = colorsOf(place);
  let classes = null;
  let cells = null;
  let tool = matchMedia("(pointer: coarse)").matches ? "move" : "lasso";
  let stroke = null;
  let planned = 0;

  // ---- what is chosen above the map

  function chosen(name, otherwise) {
    return page.querySelector(`input[name="${name}"]:checked`)?.value ?? otherwise;
  }

  const projection = () => chosen("map-projection", state.projections[0]);
  const color = () => chosen("map-color", "split");

  // ---- drawing

  function render() {
    planned = 0;
    if (points) draw(canvas, view, points, look);
  }

  function plan() {
    planned ||= requestAnimationFrame(render);
  }

  function restyle() {
    colors = colorsOf(place);
    const key = coloring(color(), points, classes, state.splits, look.outcomes, colors);
    Object.assign(look, { colors, key, classes, names: color() === "class" ? state.classes : null });
    showKey(key);
    plan();
  }

  function project() {
    look.places = points.places[projection()];
    view.hold(look.places);
    cells = null;
    const note = named("map-note");
    note.textContent = note.dataset[projection()];
    look.area = [];
    look.selected = null;
    if (state.area.startsWith(`${projection()}:`)) select(cornersOf(state.area), false);
    else showMix();
    plan();
  }

  function swatch(color, isHollow) {
    const icon = el("canvas", { width: 20, height: 20, "aria-hidden": "true" });
    const context = icon.getContext("2d");
    context.scale(2, 2);
    context.lineWidth = 1.8;
    context.beginPath();
    context.arc(5, 5, 3.6, 0, 2 * Math.PI);
    context.fillStyle = context.strokeStyle = color;
    if (isHollow) context.stroke();
    else context.fill();
    return icon;
  }

  function showKey(key) {
    const rows = key.rows.map(([text, number]) => el("span", {}, swatch(key.fills[number]), text));
    if (color() === "class" && points.count <= 5000) {
      state.splits.forEach((split, at) => rows.push(el("span", {}, swatch(colors.ink, at > 0), split)));
    }
    const doubtful = points.marks.reduce((sum, each) => sum + (each & 1), 0);
    const many = doubtful > MOST_RINGS ? `, up to ${MOST_RINGS} in view` : "";
    if (doubtful) rows.push(el("span", {}, swatch(colors.bad, true), `label-error candidate${many}`));
    named("map-key").replaceChildren(...rows);
    for (const row of page.querySelectorAll(".facet-row[data-class]")) {
      row.querySelector("canvas")?.remove();
      const number = state.classes.indexOf(row.dataset.class);
      if (color() === "class" && number >= 0) row.querySelector(".cut").prepend(swatch(colors.palette[classes.byClass[number]]));
    }
  }

  // ---- the selection

  function cornersOf(area) {
    const numbers = area.slice(area.indexOf(":") + 1).split(",").map(Number);
    return Array.from({ length: numbers.length / 2 }, (_, at) => [numbers[2 * at], numbers[2 * at + 1]]);
  }

  function select(corners, isNew = true) {
    look.area = corners;
    look.selected = corners.length ? insideOf(look.places, points.count, corners) : null;
    state.area = corners.length ? `${projection()}:${corners.flat().join(",")}` : "";
    showMix();
    plan();
    if (!isNew) return;
    const address = new URL(place.dataset.list, location.href);
    if (state.area) address.searchParams.set("area", state.area);
    htmx.ajax("GET", address.pathname + address.search, { source: "#found", target: "#found", swap: "innerHTML" });
    const hidden = page.querySelector('#filters input[name="area"]');
    if (hidden) hidden.value = state.area;
    else page.querySelector("#filters").prepend(el("input", { type: "hidden", name: "area", value: state.area }));
  }

  // The classes of what is selected, the most frequent first.
  function showMix() {
    const mix = named("class-mix");
    mix.hidden = !look.selected || !state.classes.length;
    if (mix.hidden) return;
    const counts = new Map();
    for (let each = 0; each < points.count; each++) {
      const number = points.classes[each];
      if (look.selected[each] && number !== NO_CLASS) counts.set(number, (counts.get(number) ?? 0) + 1);
    }
    const falling = [...counts].sort((one, other) => other[1] - one[1]);
    const most = falling[0]?.[1] ?? 1;
    mix.replaceChildren(
      ...falling.slice(0, MOST_BARS).map(([number, count]) =>
        el("li", {}, el("span", { class: "cut" }, swatch(colors.palette[classes.byClass[number]]), state.classes[number]), el("progress", { max: most, value: count, "aria-hidden": "true" }), el("span", { class: "number" }, String(count))),
      ),
    );
  }

  // ---- one point

  function addressOf(each) {
    return `${state.splits[points.splits[each]]}/${points.rows[each]}`;
  }

  function pointAt(x, y) {
    cells ??= cellsOf(look.places, points.count);
    return nearestPoint(look.places, cells, view.fromX(x), view.fromY(y), REACH_PX / view.scale);
  }

  const tips = new Map();
  let tipFor = -1;
  let waiting = 0;

  function hideTip() {
    clearTimeout(waiting);
    tipFor = -1;
    named("map-tip").hidden = true;
  }

  function showTip(each) {
    if (each === tipFor) return;
    hideTip();
    if (each < 0) return;
    tipFor = each;
    waiting = setTimeout(async () => {
      const text = await tipOf(each);
      if (tipFor !== each || list.signal.aborted) return;
      const tip = named("map-tip");
      tip.innerHTML = text;
      tip.hidden = false;
      const [x, y] = [view.toX(look.places[2 * each]), view.toY(look.places[2 * each + 1])];
      const isRight = x + tip.offsetWidth + 14 > canvas.clientWidth;
      const isLow = y + tip.offsetHeight + 14 > canvas.clientHeight;
      tip.style.left = `${Math.max(4, isRight ? x - tip.offsetWidth - 10 : x + 10)}px`;
      tip.style.top = `${Math.max(4, isLow ? y - tip.offsetHeight - 10 : y + 10)}px`;
    }, TIP_MS);
  }

  async function tipOf(each) {
    if (!tips.has(each)) {
      if (tips.size >= MOST_TIPS) tips.delete(tips.keys().next().value);
      const answer = await fetch(`${place.dataset.tip}?of=${encodeURIComponent(addressOf(each))}`, { headers: { "HX-Request": "true" } });
      tips.set(each, answer.ok ? await answer.text() : "");
    }
    return tips.get(each);
  }

  async function goTo(each) {
    if (each < 0) return;
    look.current = each;
    view.reach(look.places[2 * each], look.places[2 * each + 1]);
    plan();
    showTip(each);
    await tipOf(each);
    if (look.current !== each) return;
    const said = document.createElement("div");
    said.innerHTML = tips.get(each) ?? "";
    named("map-said").textContent = said.textContent.trim().replace(/\s+/g, " ");
  }

  function showSimilar(sample) {
    const strip = named("similar");
    strip.hidden = false;
    htmx.ajax("GET", `${place.dataset.similar}?to=${encodeURIComponent(sample)}`, { source: "#similar", target: "#similar", swap: "innerHTML" });
  }

  // ---- pointer

  function at(event) {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  on(canvas, "pointerdown", (event) => {
    if (event.button !== 0 || !points) return;
    canvas.setPointerCapture(event.pointerId);
    stroke = { path: [at(event)], isMove: tool === "move" || event.shiftKey, isLong: false };
    hideTip();
  });
  on(canvas, "pointermove", (event) => {
    if (!points) return;
    const here = at(event);
    if (!stroke) {
      showTip(pointAt(...here));
      return;
    }
    const last = stroke.path.at(-1);
    if (Math.hypot(here[0] - stroke.path[0][0], here[1] - stroke.path[0][1]) > LEAST_PX) stroke.isLong = true;
    if (stroke.isMove) {
      view.moveBy(here[0] - last[0], here[1] - last[1]);
      stroke.path.push(here);
    } else if (Math.hypot(here[0] - last[0], here[1] - last[1]) > 3) {
      stroke.path.push(here);
      look.area = areaOf(stroke.path);
    }
    plan();
  });
  on(canvas, "pointerup", (event) => {
    if (!stroke) return;
    const done = stroke;
    stroke = null;
    if (!done.isLong) {
      const each = pointAt(...at(event));
      look.area = state.area.startsWith(`${projection()}:`) ? cornersOf(state.area) : [];
      if (each >= 0) {
        goTo(each);
        showSimilar(addressOf(each));
      } else if (state.area) select([]);
      plan();
    } else if (!done.isMove) select(areaOf(done.path));
  });
  on(canvas, "pointercancel", () => (stroke = null));
  on(canvas, "pointerleave", hideTip);
  on(canvas, "wheel", (event) => {
    event.preventDefault();
    view.zoomBy(event.deltaY < 0 ? 1.2 : 1 / 1.2, ...at(event));
    hideTip();
    plan();
  }, { passive: false });

  // Corners on the grid; a long path is thinned evenly.
  function areaOf(path) {
    const [x1, y1] = path[0];
    const [x2, y2] = path.at(-1);
    const every = Math.ceil(path.length / MOST_CORNERS);
    const corners = tool === "rectangle" ? [[x1, y1], [x2, y1], [x2, y2], [x1, y2]] : path.filter((_, number) => number % every === 0);
    return corners.length < 3 ? [] : corners.map(([x, y]) => [Math.round(view.fromX(x)), Math.round(view.fromY(y))]);
  }

  // ---- keys

  on(canvas, "keydown", (event) => {
    if (!points || event.altKey || event.ctrlKey || event.metaKey) return;
    const arrow = ARROWS[event.key];
    if (arrow) {
      const middle = () => nearestPoint(look.places, (cells ??= cellsOf(look.places, points.count)), view.x, view.y, 1e6);
      goTo(look.current < 0 ? middle() : pointBeside(look.places, points.count, look.current, arrow));
    } else if (event.key === "+" || event.key === "=") view.zoomBy(ZOOM);
    else if (event.key === "-") view.zoomBy(1 / ZOOM);
    else if (event.key === "0") view.fit();
    else if (event.key === "Enter" && look.current >= 0) location.href = place.dataset.sample + addressOf(look.current);
    else if (event.key === "Escape") {
      hideTip();
      if (state.area) select([]);
    } else return;
    event.preventDefault();
    event.stopPropagation();
    plan();
  });
  // S asks for what is similar to the point, or to the tile, that has the focus.
  on(document, "keydown", (event) => {
    if (event.key !== "s" || areLettersOff() || event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.target.closest("input:not([type=checkbox]), select, textarea, dialog, [popover]")) return;
    const tile = document.activeElement?.closest?.("#found [data-place]");
    if (tile) showSimilar(tile.dataset.place);
    else if (look.current >= 0) showSimilar(addressOf(look.current));
  });

  // ---- tools

  function choose(name) {
    tool = name;
    for (const each of ["lasso", "rectangle", "move"]) named(`map-${each}`).setAttribute("aria-pressed", String(each === name));
    canvas.dataset.tool = name;
  }

  for (const each of ["lasso", "rectangle", "move"]) on(named(`map-${each}`), "click", () => choose(each));
  const zooming = { "map-in": () => view.zoomBy(ZOOM), "map-out": () => view.zoomBy(1 / ZOOM), "map-fit": () => view.fit() };
  for (const [id, act] of Object.entries(zooming)) {
    on(named(id), "click", () => {
      act();
      plan();
    });
  }
  on(page, "change", async ({ target }) => {
    if (!points) return;
    if (target.name === "map-projection") project();
    if (target.name === "map-color") {
      if (target.value === "error" && !look.outcomes) look.outcomes = new Uint8Array(await bytesOf(place.dataset.outcomes));
      restyle();
    }
  });
  on(document, "ziggurat:theme", () => points && restyle());
  const dark = matchMedia("(prefers-color-scheme: dark)");
  on(dark, "change", () => points && restyle());
  const resizing = new ResizeObserver(plan);
  resizing.observe(canvas);

  // ---- beginning

  async function bytesOf(address) {
    const answer = await fetch(address);
    if (!answer.ok) throw new Error(`The map answers ${answer.status}.`);
    return answer.arrayBuffer();
  }

  async function begin() {
    const [block, left] = await Promise.all([bytesOf(place.dataset.points), state.isFiltered ? bytesOf(place.dataset.matching) : null]);
    if (list.signal.aborted) return;
    points = pointsOf(block, state);
    look.shown = left && new Uint8Array(left);
    classes = classColors(points, state.classes);
    restyle();
    project();
    choose(tool);
    for (const id of ["map-tools", "map-colors", "map-projections"]) named(id)?.removeAttribute("hidden");
    render();
    place.dataset.drawn = "true";
    markOnce("map");
  }

  begin().catch(() => {
    if (list.signal.aborted) return;
    named("map-said").textContent = "The map could not be loaded.";
    document.dispatchEvent(new CustomEvent("ziggurat:say", { detail: { level: "error", text: "The map could not be loaded. Try again." } }));
  });
  return () => {
    list.abort();
    resizing.disconnect();
    cancelAnimationFrame(planned);
  };
}
