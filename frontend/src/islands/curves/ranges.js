// The range of the y axis: one value far from all others must not press the rest of a curve into a line.
import uPlot from "uplot";

const FEW = 5; // so few values say nothing about each other
const TAIL = 0.05;
const FAR = 4; // times the spread of the middle values
const PAD = 0.08;
const VAST = 1e6;
const MOST = 1e15; // uPlot has no ticks for numbers of more than 17 digits

// Lowest and highest value that are drawn, those of all values, and whether some lie outside. Each line counts by
// itself: one run that is unlike all others is no spike.
export function usualRangeOf(columns) {
  const found = columns.map(usualRange).filter(Boolean);
  if (!found.length) return { min: null, max: null, least: null, most: null, isCut: false };
  const low = (name) => Math.min(...found.map((each) => each[name]));
  const high = (name) => Math.max(...found.map((each) => each[name]));
  const whole = { min: low("min"), max: high("max"), least: low("least"), most: high("most") };
  return { ...whole, isCut: whole.least < whole.min || whole.most > whole.max };
}

// Of one line; null where it has no value.
function usualRange(values) {
  const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
  if (!sorted.length) return null;
  const [least, most] = [sorted[0], sorted.at(-1)];
  const whole = { min: least, max: most, least, most };
  if (sorted.length < FEW) return whole;
  const high = sorted[Math.floor((1 - TAIL) * (sorted.length - 1))];
  const low = sorted[Math.ceil(TAIL * (sorted.length - 1))];
  const room = FAR * (high - low);
  if (room === 0) return whole;
  const inside = sorted.filter((value) => value >= low - room && value <= high + room);
  return { ...whole, min: inside[0], max: inside.at(-1) };
}

// Round ends around the values; shares stay within 0 and 100 %, and what is never negative begins at 0 or above.
export function roundRange(least, most, isPercent) {
  if (least == null) return [0, 1];
  const pad = { pad: PAD, soft: null, mode: 0 };
  let [min, max] = uPlot.rangeNum(least, most, { min: pad, max: pad });
  if (least >= 0) min = Math.max(0, min);
  if (isPercent) max = Math.min(1, max);
  return min < max ? [min, max] : [min, min + (isPercent ? 0.1 : 1)];
}

// Whether values of a loss that grew beyond all bounds need a logarithmic axis: a linear one shows the last alone.
export function isVast(columns) {
  const found = columns.flat().filter(Number.isFinite);
  const [least, most] = [Math.min(...found), Math.max(...found)];
  return least > 0 && most > VAST && most / least > VAST;
}

// A few of the powers of ten between two values that lie far apart.
export function farDecades(least, most) {
  const [first, last] = [Math.log10(least), Math.log10(most)].map(Math.round);
  const step = Math.max(1, Math.ceil((last - first) / 5));
  return Array.from({ length: Math.floor((last - first) / step) + 1 }, (_value, number) => 10 ** (first + number * step));
}

// Whole powers of ten around the values; a value that stands still gets some room, too. A loss that goes on beyond leaves
// the chart at its upper edge.
export function decades(least, all) {
  if (least == null) return [0.1, 1];
  const most = Math.max(least, Math.min(all, MOST));
  return least === most ? [least / 10, most * 10] : uPlot.rangeLog(least, most, 10, true);
}
