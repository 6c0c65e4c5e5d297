// The range of the y axis: one value far from all others must not press the rest of a curve into a line.
import uPlot from "uplot";

const FEW = 5; // so few values say nothing about each other
const TAIL = 0.05;
const FAR = 4; // times the spread of the middle values
const PAD = 0.08;
const FLATTENS = 1e4;
const MOST_TICKS = 5;

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

// Whether a linear axis would show one value and a line at 0, as of a loss that exploded.
export function isSpread(curve) {
  const positive = (curve?.values ?? []).filter((value) => Number.isFinite(value) && value > 0);
  return positive.length > 1 && Math.max(...positive) > FLATTENS * Math.min(...positive);
}

// A few powers of ten, so that 30 decades have no line for each tenth of each; null where the usual ticks are few.
export function powersOfTen(least, most) {
  const [low, high] = [Math.ceil(Math.log10(least) - 1e-9), Math.floor(Math.log10(most) + 1e-9)];
  if (!(high - low > MOST_TICKS)) return null;
  const step = Math.ceil((high - low) / MOST_TICKS);
  return Array.from({ length: Math.floor((high - low) / step) + 1 }, (_, place) => 10 ** (low + place * step));
}

// Whole powers of ten around the values; a value that stands still gets some room, too.
export function decades(least, most) {
  if (least == null) return [0.1, 1];
  return least === most ? [least / 10, most * 10] : uPlot.rangeLog(least, most, 10, true);
}
