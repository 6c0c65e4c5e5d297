// The image with its boxes: drawing them, zoom and pan, and what mouse, pen and fingers do. Coordinates are px of the
// image; `unit` is the length of one px of the screen in them.
import { areaOf, between, contains, CORNERS, moved, resized } from "./geometry.js";

const SVG = "http://www.w3.org/2000/svg";
const COLOURS = 8;
const HANDLE_PX = 9;
const REACH_PX = { mouse: 7, pen: 10, touch: 16 };
const LEAST_DRAG_PX = 4;
const MOST_LABELS = 25;
const MOST_ZOOM = 40; // px of the screen for a px of the image
const SIDES = [...Object.values(CORNERS), [1], [2], [3], [0]];

const svgEl = (tag, attributes = {}) => {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
};

const colour = (number) => `colour-${number >= 0 ? number % COLOURS : -1}`;

function setBox(rect, [left, top, right, bottom]) {
  rect.setAttribute("x", left);
  rect.setAttribute("y", top);
  rect.setAttribute("width", Math.max(right - left, 0));
  rect.setAttribute("height", Math.max(bottom - top, 0));
}

// A frame in the color of a class, on a wider one that is seen on any image.
function framed() {
  const rects = [svgEl("rect", { class: "under" }), svgEl("rect")];
  const group = svgEl("g");
  group.append(...rects);
  return { group, rects };
}

export function stageOf({ svg, size, names, model, proposals, mayWrite, act }) {
  const layers = ["proposed", "drawn", "held"].map((name) => svgEl("g", { class: `marks ${name}` }));
  svg.querySelector("#boxes-marks").remove();
  svg.append(...layers);
  const [proposed, drawn, held] = layers;
  const shown = new Map(); // id → { each, group, rects, label }
  const view = { x: 0, y: 0, unit: 1, isFitted: true };
  const screen = { width: svg.clientWidth, height: svg.clientHeight }; // asked for at each key, they would cost a layout
  const pointers = new Map();
  let drag = null;
  let isDrawing = false;
  let isPanning = false;
  let corner = null; // name of the corner that arrow keys move

  // ---- view

  function show() {
    const { width, height } = screen;
    svg.setAttribute("viewBox", `${view.x} ${view.y} ${Math.max(width, 1) * view.unit} ${Math.max(height, 1) * view.unit}`);
    svg.style.setProperty("--unit", `${view.unit}px`);
    act.zoomed(1 / view.unit);
    showHandles();
  }

  function fit() {
    const { width, height } = screen;
    view.unit = Math.max(size[0] / Math.max(width, 1), size[1] / Math.max(height, 1));
    view.x = (size[0] - width * view.unit) / 2;
    view.y = (size[1] - height * view.unit) / 2;
    view.isFitted = true;
    show();
  }

  function zoom(factor, at = null) {
    const { width, height } = screen;
    const [x, y] = at ?? [view.x + (width * view.unit) / 2, view.y + (height * view.unit) / 2];
    const largest = 2 * Math.max(size[0] / Math.max(width, 1), size[1] / Math.max(height, 1));
    const unit = Math.min(Math.max(view.unit / factor, 1 / MOST_ZOOM), Math.max(largest, 1 / MOST_ZOOM));
    view.x = x - ((x - view.x) * unit) / view.unit;
    view.y = y - ((y - view.y) * unit) / view.unit;
    view.unit = unit;
    view.isFitted = false;
    show();
  }

  // Brings a box into sight where it is not.
  function reveal(box) {
    const { width, height } = screen;
    const right = view.x + width * view.unit;
    const bottom = view.y + height * view.unit;
    if (box[0] < right && box[2] > view.x && box[1] < bottom && box[3] > view.y) return;
    view.x = (box[0] + box[2] - width * view.unit) / 2;
    view.y = (box[1] + box[3] - height * view.unit) / 2;
    view.isFitted = false;
    show();
  }

  function pointOf(event) {
    const place = svg.getBoundingClientRect();
    return [view.x + (event.clientX - place.left) * view.unit, view.y + (event.clientY - place.top) * view.unit];
  }

  // ---- drawing

  function drawnFor(each) {
    const mark = framed();
    drawn.append(mark.group);
    return { each: null, label: null, ...mark };
  }

  function paint(mark, each, isSelected, hasLabel) {
    const text = hasLabel ? (names[each.class] ?? "ignored") : "";
    if (mark.each === each && mark.isSelected === isSelected && mark.text === text) return;
    mark.rects.forEach((rect) => setBox(rect, each.box));
    mark.group.setAttribute("class", `${colour(each.class)}${isSelected ? " selected" : ""}`);
    if (text && !mark.label) mark.group.append((mark.label = svgEl("text")));
    if (mark.label) {
      mark.label.textContent = text;
      mark.label.setAttribute("x", each.box[0]);
      mark.label.setAttribute("y", each.box[1]);
    }
    Object.assign(mark, { each, isSelected, text });
  }

  function showBoxes() {
    const selected = model.selected;
    const labels = model.boxes.length <= MOST_LABELS;
    const left = new Set(shown.keys());
    for (const each of model.boxes) {
      let mark = shown.get(each.id);
      if (!mark) shown.set(each.id, (mark = drawnFor(each)));
      left.delete(each.id);
      paint(mark, each, each === selected, labels || each === selected);
    }
    for (const id of left) {
      shown.get(id).group.remove();
      shown.delete(id);
    }
    if (selected) drawn.append(shown.get(selected.id).group); // on top of the others
    showHandles();
  }

  function showHandles() {
    const selected = model.selected;
    held.replaceChildren();
    if (!selected || !mayWrite) return;
    const [left, top, right, bottom] = selected.box;
    const half = (HANDLE_PX * view.unit) / 2;
    const middle = [(left + right) / 2, (top + bottom) / 2];
    const places = [...Object.values(CORNERS).map((sides) => sides.map((side) => selected.box[side])), [middle[0], top], [right, middle[1]], [middle[0], bottom], [left, middle[1]]];
    places.forEach(([x, y], number) => {
      const isHeld = number < 4 && Object.keys(CORNERS)[number] === corner;
      held.append(svgEl("rect", { x: x - half, y: y - half, width: 2 * half, height: 2 * half, class: isHeld ? "handle held" : "handle" }));
    });
  }

  function showProposals() {
    proposed.replaceChildren(
      ...proposals.shown().map((each) => {
        const { group, rects } = framed();
        group.setAttribute("class", `${colour(each.class)}${each === proposals.chosen ? " selected" : ""}`);
        rects.forEach((rect) => setBox(rect, each.box));
        const label = svgEl("text", { x: each.box[0], y: each.box[1] });
        label.textContent = `${names[each.class] ?? ""} ${each.score.toFixed(2)}`;
        group.append(label);
        return group;
      }),
    );
  }

  // ---- pointers

  function handleAt(point, reach) {
    const selected = model.selected;
    if (!selected || !mayWrite) return null;
    const slack = reach * view.unit;
    if (!contains(selected.box, point, slack)) return null;
    const near = selected.box.map((side, number) => Math.abs(point[number % 2] - side) <= slack);
    // A small box is moved by its middle.
    const isSmall = Math.min(selected.box[2] - selected.box[0], selected.box[3] - selected.box[1]) < 3 * slack;
    const found = SIDES.find((sides) => sides.every((side) => near[side]));
    return found && (!isSmall || !contains(selected.box, point, -slack / 3)) ? found : null;
  }

  function boxAt(point) {
    const selected = model.selected;
    if (selected && contains(selected.box, point)) return selected;
    const slack = 2 * view.unit;
    return model.boxes.filter((each) => contains(each.box, point, slack)).sort((a, b) => areaOf(a.box) - areaOf(b.box))[0] ?? null;
  }

  function begin(event) {
    const point = pointOf(event);
    const start = { point, client: [event.clientX, event.clientY], list: model.boxes, view: { ...view } };
    if (isPanning || event.button === 1 || !mayWrite) return { ...start, kind: "pan" };
    if (isDrawing) return { ...start, kind: "draw" };
    const sides = handleAt(point, REACH_PX[event.pointerType] ?? REACH_PX.mouse);
    if (sides) return { ...start, kind: "resize", sides, box: model.selected.box, id: model.selected.id };
    const hit = boxAt(point);
    if (hit) return { ...start, kind: "move", id: hit.id, box: hit.box };
    return { ...start, kind: "draw" };
  }

  function down(event) {
    if (event.button > 1) return;
    svg.focus({ preventScroll: true });
    pointers.set(event.pointerId, [event.clientX, event.clientY]);
    svg.setPointerCapture(event.pointerId);
    if (pointers.size === 2) {
      cancel();
      drag = { kind: "pinch", before: [...pointers.values()] };
      return;
    }
    if (pointers.size > 2) return;
    event.preventDefault();
    drag = begin(event);
    if (drag.kind === "move") model.select(drag.id);
  }

  function move(event) {
    if (pointers.has(event.pointerId)) pointers.set(event.pointerId, [event.clientX, event.clientY]);
    if (!drag) return hover(event);
    if (drag.kind === "pinch") return pinch();
    const far = Math.hypot(event.clientX - drag.client[0], event.clientY - drag.client[1]);
    if (!drag.isFar && far < LEAST_DRAG_PX) return undefined;
    drag.isFar = true;
    const point = pointOf(event);
    if (drag.kind === "pan") {
      view.x = drag.view.x - (event.clientX - drag.client[0]) * view.unit;
      view.y = drag.view.y - (event.clientY - drag.client[1]) * view.unit;
      view.isFitted = false;
      show();
    } else if (drag.kind === "move") {
      model.preview(drag.id, moved(drag.box, Math.round(point[0] - drag.point[0]), Math.round(point[1] - drag.point[1]), size));
    } else if (drag.kind === "resize") {
      model.preview(drag.id, resized(drag.box, drag.sides, point.map(Math.round), size));
    } else {
      drag.drawnBox = between(drag.point, point, size);
      drag.rect ??= held.parentNode.appendChild(svgEl("rect", { class: `drawing ${colour(act.classForNew())}` }));
      setBox(drag.rect, drag.drawnBox);
    }
    return undefined;
  }

  function pinch() {
    const [a, b] = [...pointers.values()];
    const [c, d] = drag.before;
    const apart = ([x1, y1], [x2, y2]) => Math.hypot(x1 - x2, y1 - y2) || 1;
    const middle = ([x1, y1], [x2, y2]) => ({ clientX: (x1 + x2) / 2, clientY: (y1 + y2) / 2 });
    view.x -= (middle(a, b).clientX - middle(c, d).clientX) * view.unit;
    view.y -= (middle(a, b).clientY - middle(c, d).clientY) * view.unit;
    zoom(apart(a, b) / apart(c, d), pointOf(middle(a, b)));
    drag.before = [a, b];
  }

  function hover(event) {
    if (event.pointerType !== "mouse") return;
    const sides = isDrawing || isPanning ? null : handleAt(pointOf(event), REACH_PX.mouse);
    const isOdd = sides?.length === 2 && (sides[0] === 2) !== (sides[1] === 3);
    const resize = sides && (sides.length === 2 ? (isOdd ? "nesw-resize" : "nwse-resize") : sides[0] % 2 ? "ns-resize" : "ew-resize");
    svg.style.cursor = resize || (isPanning || !mayWrite ? "grab" : !isDrawing && boxAt(pointOf(event)) ? "move" : "crosshair");
  }

  function up(event) {
    pointers.delete(event.pointerId);
    const ended = drag;
    if (!ended || (ended.kind === "pinch" && pointers.size)) return;
    drag = null;
    ended.rect?.remove();
    if (ended.kind === "draw") {
      if (ended.drawnBox) act.drawn(ended.drawnBox);
      else act.pressed(ended.point);
      setDrawing(false);
    } else if (ended.isFar && (ended.kind === "move" || ended.kind === "resize")) model.settle(ended.list);
  }

  // Ends what the pointer is at, as if it had not begun; false where it is at nothing.
  function cancel() {
    const ended = drag;
    drag = null;
    ended?.rect?.remove();
    if (ended?.isFar && (ended.kind === "move" || ended.kind === "resize")) model.restore(ended.list);
    return Boolean(ended);
  }

  function turned(event) {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 30 : 1;
    if (event.shiftKey) {
      view.x += (event.deltaX || event.deltaY) * lines * view.unit;
      view.isFitted = false;
      show();
    } else zoom(1.002 ** (-event.deltaY * lines), pointOf(event));
  }

  function setDrawing(value) {
    isDrawing = value;
    svg.style.cursor = value ? "crosshair" : "";
    act.drawing(value);
  }

  svg.addEventListener("pointerdown", down);
  svg.addEventListener("pointermove", move);
  svg.addEventListener("pointerup", up);
  svg.addEventListener("pointercancel", (event) => {
    pointers.delete(event.pointerId);
    cancel();
  });
  svg.addEventListener("wheel", turned, { passive: false });
  const watcher = new ResizeObserver(() => {
    Object.assign(screen, { width: svg.clientWidth, height: svg.clientHeight });
    if (view.isFitted) fit();
    else show();
  });
  watcher.observe(svg);

  return {
    fit,
    zoom,
    reveal,
    showBoxes,
    showProposals,
    cancel,
    setDrawing,
    get isDrawing() {
      return isDrawing;
    },
    setPanning(value) {
      isPanning = value;
    },
    get corner() {
      return corner;
    },
    setCorner(name) {
      corner = name;
      showHandles();
    },
    // A box in the middle of what is seen, for those who draw by keyboard.
    usualBox() {
      const { width, height } = screen;
      const seen = [Math.max(view.x, 0), Math.max(view.y, 0), Math.min(view.x + width * view.unit, size[0]), Math.min(view.y + height * view.unit, size[1])];
      const [w, h] = [seen[2] - seen[0], seen[3] - seen[1]];
      return between([seen[0] + 0.4 * w, seen[1] + 0.4 * h], [seen[0] + 0.6 * w, seen[1] + 0.6 * h], size);
    },
    end: () => watcher.disconnect(),
  };
}
