// Draws the points of a map: color by color, those that are meant last.
import { colours } from "../curves/dom.js";
import { CANDIDATE, densest, GRID, NO_CLASS } from "./points.js";

const COLORS = 9; // eight series and the ink; further classes are gray
const CONTEXT = COLORS;
const MANY = 5000; // from here on points are plain squares
const MOST_NAMES = 24;
export const MOST_RINGS = 400;
const FAINT = 0.42;
const FAINT_OF_MANY = 0.18;

const SERIES = Array.from({ length: 8 }, (_, at) => `--series-${at + 1}`);
const OTHERS = ["--ink", "--series-context", "--surface", "--bad", "--ok", "--focus"];

export function colorsOf(element) {
  const found = colours(element, [...SERIES, ...OTHERS]);
  return {
    palette: [...SERIES, "--ink", "--series-context"].map((token) => found[token]),
    surface: found["--surface"],
    ink: found["--ink"],
    bad: found["--bad"],
    ok: found["--ok"],
    focus: found["--focus"],
    context: found["--series-context"],
    font: getComputedStyle(document.body).fontFamily,
  };
}

// Classes → numbers of colors: the largest have one of their own.
export function classColors(points, classes) {
  const counts = new Uint32Array(classes.length);
  for (const each of points.classes) if (each !== NO_CLASS && each < counts.length) counts[each] += 1;
  const used = [...counts.keys()].filter((each) => counts[each]);
  const colored = used.length <= COLORS ? used : [...used].sort((one, other) => counts[other] - counts[one]).slice(0, COLORS);
  const found = new Uint8Array(classes.length).fill(CONTEXT);
  colored.sort((one, other) => one - other).forEach((each, at) => (found[each] = at));
  return { byClass: found, counts, used };
}

const OUTCOMES = ["context", "ok", "bad"];
const SPLITS = [0, 1, 7];

// Returns the key of colors: what a point is colored by, and what the legend says.
export function coloring(name, points, classes, splits, outcomes, colors) {
  if (name === "split") {
    return {
      of: (each) => SPLITS[points.splits[each]] ?? CONTEXT,
      fills: colors.palette,
      rows: splits.map((split, at) => [split, SPLITS[at] ?? CONTEXT]),
    };
  }
  if (name === "error") {
    const fills = OUTCOMES.map((each) => colors[each]);
    return { of: (each) => outcomes?.[each] ?? 0, fills, rows: [["correct", 1], ["wrong", 2]] };
  }
  return { of: (each) => (points.classes[each] === NO_CLASS ? CONTEXT : classes.byClass[points.classes[each]]), fills: colors.palette, rows: [] };
}

export function draw(canvas, view, points, look) {
  const { places, colors, key, shown, selected, current, area, names, classes } = look;
  const ratio = devicePixelRatio || 1;
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  const isMany = points.count > MANY;
  const grow = Math.min(2, view.zoom ** 0.35);
  const radius = (points.count > 20000 ? 1 : isMany ? 1.4 : points.count > 2000 ? 2.2 : 3) * grow;
  const isFaint = (each) => (shown && !shown[each]) || (selected && !selected[each]);
  const put = (each) => [view.toX(places[2 * each]), view.toY(places[2 * each + 1])];

  // One walk sorts the points, two draw: faint ones lie below.
  const faint = key.fills.map(() => []);
  const strong = key.fills.map(() => []);
  for (let each = 0; each < points.count; each++) {
    const [x, y] = put(each);
    if (x < -9 || y < -9 || x > width + 9 || y > height + 9) continue;
    (isFaint(each) ? faint : strong)[key.of(each)].push(each);
  }
  for (const [groups, alpha] of [[faint, isMany ? FAINT_OF_MANY : FAINT], [strong, 1]]) {
    context.globalAlpha = alpha;
    groups.forEach((group, color) => paint(context, group, key.fills[color], put, radius, isMany, points, colors));
  }
  context.globalAlpha = 1;
  ring(context, points, isFaint, put, radius, colors, [width, height]);
  if (area.length) outline(context, area, view, colors);
  if (current >= 0) {
    const [x, y] = put(current);
    context.strokeStyle = colors.focus;
    context.lineWidth = 2.5;
    circle(context, x, y, radius + 4);
    context.stroke();
  }
  if (names) label(context, points, places, classes, names, view, colors);
}

function circle(context, x, y, radius) {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
}

function paint(context, group, fill, put, radius, isMany, points, colors) {
  if (!group.length) return;
  context.fillStyle = fill;
  context.strokeStyle = fill;
  if (isMany) {
    for (const each of group) {
      const [x, y] = put(each);
      context.fillRect(x - radius, y - radius, 2 * radius, 2 * radius);
    }
    return;
  }
  context.lineWidth = 1.6;
  for (const each of group) {
    const [x, y] = put(each);
    circle(context, x, y, points.splits[each] ? radius - 0.4 : radius);
    if (points.splits[each]) {
      context.fillStyle = colors.surface;
      context.fill();
      context.stroke();
      context.fillStyle = fill;
    } else context.fill();
  }
}

// Rings that cover each other say nothing: of many, they are drawn once a zoom, a filter or an area leaves few.
function ring(context, points, isFaint, put, radius, colors, [width, height]) {
  const rings = [];
  for (let each = 0; each < points.count; each++) {
    if (!(points.marks[each] & CANDIDATE)) continue;
    const [x, y] = put(each);
    if (x >= 0 && y >= 0 && x <= width && y <= height) rings.push([x, y, isFaint(each)]);
  }
  const clear = rings.filter(([, , isBelow]) => !isBelow);
  const drawn = rings.length <= MOST_RINGS ? rings : clear.length <= MOST_RINGS ? clear : [];
  context.strokeStyle = colors.bad;
  context.lineWidth = 1.8;
  for (const [x, y, isBelow] of drawn) {
    context.globalAlpha = isBelow ? FAINT : 1;
    circle(context, x, y, radius + 3);
    context.stroke();
  }
  context.globalAlpha = 1;
}

function outline(context, area, view, colors) {
  context.beginPath();
  area.forEach(([x, y], at) => context[at ? "lineTo" : "moveTo"](view.toX(x), view.toY(y)));
  context.closePath();
  context.globalAlpha = 0.08;
  context.fillStyle = colors.focus;
  context.fill();
  context.globalAlpha = 1;
  context.strokeStyle = colors.focus;
  context.lineWidth = 1.75;
  context.setLineDash([5, 3]);
  context.stroke();
  context.setLineDash([]);
}

function label(context, points, places, classes, names, view, colors) {
  if (classes.used.length > MOST_NAMES) return;
  context.font = `600 13px ${colors.font}`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.lineJoin = "round";
  context.lineWidth = 4;
  for (const number of classes.used) {
    const place = densest(points, places, number);
    if (!place) continue;
    const at = [view.toX(place[0]), view.toY(place[1])];
    context.strokeStyle = colors.surface;
    context.strokeText(names[number], ...at);
    context.fillStyle = colors.ink;
    context.fillText(names[number], ...at);
  }
}

const MARGIN_PX = 28;

// What is seen of the map: all points at zoom 1, in one scale for both axes, around a center.
export function viewOf(canvas) {
  let box = [0, 0, GRID, GRID];
  const view = {
    zoom: 1,
    x: GRID / 2,
    y: GRID / 2,
    get scale() {
      const fits = [canvas.clientWidth / (box[2] - box[0] || 1), canvas.clientHeight / (box[3] - box[1] || 1)];
      const least = Math.min(...fits);
      return view.zoom * least * Math.max(0.5, 1 - (2 * MARGIN_PX) / Math.min(canvas.clientWidth, canvas.clientHeight));
    },
    toX: (x) => canvas.clientWidth / 2 + (x - view.x) * view.scale,
    toY: (y) => canvas.clientHeight / 2 + (y - view.y) * view.scale,
    fromX: (x) => view.x + (x - canvas.clientWidth / 2) / view.scale,
    fromY: (y) => view.y + (y - canvas.clientHeight / 2) / view.scale,
    // Zooms so that what is at a place of the canvas stays there.
    zoomBy(factor, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) {
      const [gridX, gridY] = [view.fromX(x), view.fromY(y)];
      view.zoom = Math.min(60, Math.max(1, view.zoom * factor));
      view.x += gridX - view.fromX(x);
      view.y += gridY - view.fromY(y);
      view.keep();
    },
    moveBy(x, y) {
      view.x -= x / view.scale;
      view.y -= y / view.scale;
      view.keep();
    },
    fit() {
      Object.assign(view, { zoom: 1, x: (box[0] + box[2]) / 2, y: (box[1] + box[3]) / 2 });
    },
    // Says which places there are.
    hold(places) {
      box = [GRID, GRID, 0, 0];
      for (let at = 0; at < places.length; at += 2) {
        if (places[at] < box[0]) box[0] = places[at];
        if (places[at] > box[2]) box[2] = places[at];
        if (places[at + 1] < box[1]) box[1] = places[at + 1];
        if (places[at + 1] > box[3]) box[3] = places[at + 1];
      }
      view.fit();
    },
    keep() {
      view.x = Math.min(GRID, Math.max(0, view.x));
      view.y = Math.min(GRID, Math.max(0, view.y));
    },
    // Shows a point that is outside of what is seen.
    reach(x, y) {
      const [left, top] = [view.toX(x), view.toY(y)];
      if (left < 0 || top < 0 || left > canvas.clientWidth || top > canvas.clientHeight) Object.assign(view, { x, y });
    },
  };
  return view;
}
