// What a chart draws: its lines, and their points in one table with a common x.
import uPlot from "uplot";
import { partOf } from "./groups.js";
import { smooth } from "./smoothing.js";

const DASHES = [null, [8, 5], [2, 4], [12, 4, 2, 4], [5, 2]];
const PARTS = ["training", "validation", "test"];

// One line for each curve of each run; runs that are compared are dashed. Equal runs are told apart by their color, and
// from the seventh on by their dashes as well.
export function linesOf(group, runs, isEqual = false) {
  if (isEqual) return equalLines(group.tags[0], runs);
  const lines = [];
  runs.forEach((run, number) => {
    for (const tag of group.tags) {
      if (!run.curves.has(tag)) continue;
      const part = partOf(tag);
      const isAlone = group.tags.length === 1;
      const label = number === 0 ? (isAlone ? group.title : part) : isAlone ? run.name : `${part}: ${run.name}`;
      const token = `--series-${((number * 2 + Math.max(0, PARTS.indexOf(part))) % 6) + 1}`;
      lines.push({ run, tag, label, token, dash: DASHES[number % DASHES.length] });
    }
  });
  return lines;
}

function equalLines(tag, runs) {
  return runs.flatMap((run, number) => (run.curves.has(tag) ? [{ run, tag, label: run.label, token: `--series-${(number % 6) + 1}`, dash: DASHES[Math.floor(number / 6) % DASHES.length] }] : []));
}

// The table that uPlot draws: x, then one column a line, or two where it is smoothed (as it is, and smooth).
export function tableOf(lines, settings) {
  const parts = lines.map((line) => {
    const curve = line.run.curves.get(line.tag);
    const values = curve.values.map((value) => (Number.isFinite(value) && (!settings.isLog || value > 0) ? value : null));
    const columns = settings.smoothing > 0 ? [values, smooth(values, settings.smoothing)] : [values];
    return [placesOf(curve, line.run, settings.x), ...columns];
  });
  return parts.length ? uPlot.join(parts) : [[]];
}

function placesOf(curve, run, x) {
  if (x === "epoch" && run.stepsPerEpoch > 0) return curve.steps.map((step) => step / run.stepsPerEpoch);
  if (x !== "time") return curve.steps;
  const first = Math.min(...[...run.curves.values()].map((each) => each.times[0] ?? Infinity));
  let last = -Infinity;
  // A clock may be set back; the places of a line must grow.
  return curve.times.map((time) => (last = Math.max(time - first, last + 1e-6)));
}
