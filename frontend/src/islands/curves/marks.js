// The events of the job whose page it is, as vertical lines on its charts: interventions, new attempts, a divergence.
// The page brings them in an attribute, and has a table of them; compared runs have none.
import { el } from "./dom.js";

const NEAR_PX = 6;

// The marks that the page names now, each with its place on the x axis.
export function marksOf(run, settings) {
  const text = document.getElementById("job-metrics")?.dataset.marks;
  if (!text || settings.isEqual) return [];
  return JSON.parse(text).map((mark) => ({ ...mark, x: placeOf(mark, run, settings.x) }));
}

function placeOf(mark, run, x) {
  if (x === "step") return mark.step;
  if (x === "epoch") return run.stepsPerEpoch ? mark.step / run.stepsPerEpoch : null;
  return timeOf(mark, run);
}

// The time of the first point from that step on, of the curve with the most points.
function timeOf(mark, run) {
  const curves = [...run.curves.values()].sort((a, b) => b.steps.length - a.steps.length);
  const curve = curves[0];
  if (!curve) return null;
  const start = Math.min(...curves.map((each) => each.times[0]));
  const index = curve.steps.findIndex((step) => step >= mark.step);
  return curve.times[index < 0 ? curve.times.length - 1 : index] - start;
}

export function drawMarks(plot, marks, colour) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.lineWidth = Math.max(1, devicePixelRatio);
  for (const mark of marks) {
    if (mark.x == null || mark.x < plot.scales.x.min || mark.x > plot.scales.x.max) continue;
    const left = plot.valToPos(mark.x, "x", true);
    ctx.strokeStyle = mark.kind === "divergence" ? colour["--bad"] : colour["--ink-soft"];
    ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
    ctx.beginPath();
    ctx.moveTo(left, bbox.top);
    ctx.lineTo(left, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

// The texts of the marks at the cursor.
export function textsAt(plot, marks) {
  const left = plot.cursor.left ?? -1;
  if (left < 0) return [];
  return marks.filter((mark) => mark.x != null && Math.abs(plot.valToPos(mark.x, "x") - left) <= NEAR_PX).map((mark) => `Step ${mark.step}: ${mark.text}`);
}

export function labelOf() {
  return el("p", { class: "curve-mark", hidden: true });
}
