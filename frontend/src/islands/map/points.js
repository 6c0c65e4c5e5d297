// The points of a map as arrays, read from one block of numbers; see `points` in web/pages/dataset/explore_map.py.
export const NO_CLASS = 65535;
export const GRID = 65535;
export const CANDIDATE = 1;
export const NEAR = 2;

const CELLS = 64; // a point is searched for in the cells around a place

export function pointsOf(buffer, { count, projections }) {
  let at = 0;
  const take = (Kind, length) => {
    const found = new Kind(buffer, at, length);
    at += found.byteLength;
    return found;
  };
  const rows = take(Uint32Array, count);
  const places = Object.fromEntries(projections.map((name) => [name, take(Uint16Array, 2 * count)]));
  return { count, rows, places, classes: take(Uint16Array, count), splits: take(Uint8Array, count), marks: take(Uint8Array, count) };
}

// Lists of points by cell, so that the one under a pointer is found without a look at all.
export function cellsOf(places, count) {
  const cells = new Map();
  for (let each = 0; each < count; each++) {
    const cell = cellOf(places[2 * each], places[2 * each + 1]);
    const list = cells.get(cell);
    if (list) list.push(each);
    else cells.set(cell, [each]);
  }
  return cells;
}

const size = (GRID + 1) / CELLS;

function cellOf(x, y) {
  return Math.floor(y / size) * CELLS + Math.floor(x / size);
}

// Returns the nearest point within `reach` of a place; -1 for none.
export function nearestPoint(places, cells, x, y, reach) {
  let best = -1;
  let least = reach * reach;
  const low = (value) => Math.max(0, Math.floor((value - reach) / size));
  const high = (value) => Math.min(CELLS - 1, Math.floor((value + reach) / size));
  for (let row = low(y); row <= high(y); row++) {
    for (let column = low(x); column <= high(x); column++) {
      for (const each of cells.get(row * CELLS + column) ?? []) {
        const distance = (places[2 * each] - x) ** 2 + (places[2 * each + 1] - y) ** 2;
        if (distance < least) [best, least] = [each, distance];
      }
    }
  }
  return best;
}

// Returns the nearest point in a direction from another one: what lies aside counts twice.
export function pointBeside(places, count, from, [right, down]) {
  let best = -1;
  let least = Infinity;
  for (let each = 0; each < count; each++) {
    const x = places[2 * each] - places[2 * from];
    const y = places[2 * each + 1] - places[2 * from + 1];
    const ahead = x * right + y * down;
    if (ahead <= 0) continue;
    const cost = ahead + 2 * Math.abs(x * down - y * right);
    if (cost < least) [best, least] = [each, cost];
  }
  return best;
}

// Which points are inside of an area, a byte each; as `DatasetMap.inside` in workspace/studio/dataset_maps.py.
export function insideOf(places, count, corners) {
  const found = new Uint8Array(count);
  for (let each = 0; each < count; each++) {
    const x = places[2 * each];
    const y = places[2 * each + 1];
    let inside = 0;
    for (let at = 0; at < corners.length; at++) {
      const [x1, y1] = corners[at];
      const [x2, y2] = corners[(at + 1) % corners.length];
      if (y1 > y !== y2 > y && x < ((x2 - x1) * (y - y1)) / (y2 - y1) + x1) inside ^= 1;
    }
    found[each] = inside;
  }
  return found;
}

// The place where a class is densest: there its name stands.
export function densest(points, places, number) {
  const WIDE = 24;
  const counts = new Map();
  for (let each = 0; each < points.count; each++) {
    if (points.classes[each] !== number) continue;
    const key = Math.floor((places[2 * each + 1] / (GRID + 1)) * WIDE) * WIDE + Math.floor((places[2 * each] / (GRID + 1)) * WIDE);
    const cell = counts.get(key) ?? [0, 0, 0];
    cell[0] += 1;
    cell[1] += places[2 * each];
    cell[2] += places[2 * each + 1];
    counts.set(key, cell);
  }
  let best = null;
  for (const cell of counts.values()) if (!best || cell[0] > best[0]) best = cell;
  return best && [best[1] / best[0], best[2] / best[0]];
}
