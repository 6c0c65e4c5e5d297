// Boxes as [left, top, right, bottom] in px of the image. What a person draws, moves or resizes stays within the image.
const LEAST = 1; // px

export const CORNERS = { "top left": [0, 1], "top right": [2, 1], "bottom right": [2, 3], "bottom left": [0, 3] };

const within = (value, low, high) => Math.min(Math.max(value, low), Math.max(low, high));

export function clipped([left, top, right, bottom], [width, height]) {
  return [within(left, 0, width), within(top, 0, height), within(right, 0, width), within(bottom, 0, height)];
}

export function moved(box, dx, dy, size) {
  const [left, top, right, bottom] = clipped(box, size);
  const x = within(dx, -left, size[0] - right);
  const y = within(dy, -top, size[1] - bottom);
  return [left + x, top + y, right + x, bottom + y];
}

// Moves some sides (numbers of them) to a point; a side never passes the one across.
export function resized(box, sides, [x, y], size) {
  const found = clipped(box, size);
  for (const side of sides) {
    const value = side % 2 ? y : x;
    const across = found[(side + 2) % 4];
    found[side] = side < 2 ? within(value, 0, across - LEAST) : within(value, across + LEAST, size[side % 2]);
  }
  return found;
}

// The box between two points in whole px, at least one px large.
export function between([x1, y1], [x2, y2], size) {
  const low = [Math.min(x1, x2), Math.min(y1, y2)].map((value, axis) => within(Math.round(value), 0, size[axis] - LEAST));
  const high = [Math.max(x1, x2), Math.max(y1, y2)].map((value, axis) => within(Math.round(value), low[axis] + LEAST, size[axis]));
  return [...low, ...high];
}

export function areaOf([left, top, right, bottom]) {
  return Math.max(right - left, 0) * Math.max(bottom - top, 0);
}

export function iou(a, b) {
  const shared = areaOf([Math.max(a[0], b[0]), Math.max(a[1], b[1]), Math.min(a[2], b[2]), Math.min(a[3], b[3])]);
  return shared / (areaOf(a) + areaOf(b) - shared || 1);
}

export function contains([left, top, right, bottom], [x, y], slack = 0) {
  return x >= left - slack && x <= right + slack && y >= top - slack && y <= bottom + slack;
}
