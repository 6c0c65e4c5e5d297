// What a chart draws: its lines, and their points in one table with a common x.
import uPlot from "uplot";
import { dashOf } from "./dom.js";
import { baseOf, basesOf, partOf, titleOf } from "./groups.js";
import { smooth } from "./smoothing.js";

const COLOURS = 8;
const PARTS = ["training", "validation", "test"];
const NAMES = { training: "Training", validation: "Validation", test: "Test" };

// One line for each curve of each run. Training has the first color and validation the second; from the third line on,
// dashes tell lines apart as well as colors do.
export function linesOf(group, runs, isEqual = false) {
  if (isEqual) return equalLines(group.tags[0], runs);
  const bases = basesOf(group.tags, group.base);
  if (bases.length > 1) return linesOfSeveral(group, runs, bases);
  const lines = [];
  runs.forEach((run, number) => {
    for (const tag of group.tags) {
      if (!run.curves.has(tag)) continue;
      const part = partOf(tag);
      const isAlone = group.tags.length === 1 && part === "training";
      const label = number === 0 ? (isAlone ? "" : NAMES[part]) : isAlone ? run.name : `${NAMES[part]}: ${run.name}`;
      lines.push({ run, tag, label, ...lookOf(number * 2 + PARTS.indexOf(part)) });
    }
  });
  return lines;
}

// One line for each metric of each run, named after the metric; the first has the color of a validation.
function linesOfSeveral(group, runs, bases) {
  const ordered = bases.flatMap((base) => group.tags.filter((tag) => baseOf(tag) === base));
  return runs.flatMap((run, number) =>
    ordered.flatMap((tag, at) => {
      if (!run.curves.has(tag)) return [];
      const part = partOf(tag) === "training" ? ", training" : "";
      const label = `${titleOf(baseOf(tag))}${part}${number === 0 ? "" : `: ${run.name}`}`;
      return [{ run, tag, label, ...lookOf(1 + number * ordered.length + at) }];
    }),
  );
}

function equalLines(tag, runs) {
  return runs.flatMap((run, number) => (run.curves.has(tag) ? [{ run, tag, label: run.label, ...lookOf(number) }] : []));
}

function lookOf(place) {
  const token = place < COLOURS ? `--series-${place + 1}` : "--series-context";
  return { token, dash: dashOf(place) };
}


// The table that uPlot draws: x, then two columns a line: as it is, and smooth.
export function tableOf(lines, settings) {
  const parts = lines.map((line) => {
    const curve = line.run.curves.get(line.tag);
    const values = curve.values.map((value) => (Number.isFinite(value) && (!settings.isLog || value > 0) ? value : null));
    return [placesOf(curve, line.run, settings.x), values, settings.smoothing > 0 ? smooth(values, settings.smoothing) : values];
  });
  return parts.length ? uPlot.join(parts) : [[]];
}

export function placesOf(curve, run, x) {
  if (x === "epoch" && run.stepsPerEpoch > 0) return curve.steps.map((step) => step / run.stepsPerEpoch);
  if (x !== "time") return curve.steps;
  const first = run.start;
  let last = -Infinity;
  // A clock may be set back; the places of a line must grow.
  return curve.times.map((time) => (last = Math.max(time - first, last + 1e-6)));
}

// The newest value of a curve at a place of the x axis; undefined before its first point.
export function valueAt(curve, run, x, place) {
  if (!curve) return undefined;
  const places = placesOf(curve, run, x);
  let [low, high] = [0, places.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (places[middle] <= place) low = middle + 1;
    else high = middle;
  }
  return curve.values[low - 1];
}
