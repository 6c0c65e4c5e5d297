// What the page knows of its job beside the points: the best checkpoint, and events as numbered flags. It brings them in
// attributes of one element, and lists the events in words; compared runs have none.
const NEAR_PX = 7;
const FLAG_PX = 8;
const FONT_PX = 11;

function told(name) {
  return document.getElementById("job-metrics")?.dataset[name] ?? "";
}

export function marksText() {
  return told("marks") + told("best");
}

// The marks that the page names now, each with its place on the x axis.
export function marksOf(run, settings) {
  const text = told("marks");
  if (!text || settings.isEqual) return [];
  return JSON.parse(text).map((mark, index) => ({ ...mark, number: index + 1, x: placeOf(mark.step, run, settings.x) }));
}

// The checkpoint that is used if none is named; null where there is none, or no metric tells which one is best.
export function bestOf(run, settings) {
  const text = told("best");
  if (!text || settings.isEqual) return null;
  const best = JSON.parse(text);
  return best && { ...best, x: placeOf(best.step, run, settings.x) };
}

function placeOf(step, run, x) {
  if (x === "step") return step;
  if (x === "epoch") return run.stepsPerEpoch ? step / run.stepsPerEpoch : step;
  return timeOf(step, run);
}

// The time of the first point from that step on, of the curve with the most points.
function timeOf(step, run) {
  const curves = [...run.curves.values()].sort((a, b) => b.steps.length - a.steps.length);
  const curve = curves[0];
  if (!curve) return null;
  const index = curve.steps.findIndex((each) => each >= step);
  return curve.times[index < 0 ? curve.times.length - 1 : index] - run.start;
}

function isInside(plot, x) {
  return x != null && x >= plot.scales.x.min && x <= plot.scales.x.max;
}

function upright(ctx, left, top, bottom) {
  ctx.beginPath();
  ctx.moveTo(left, top);
  ctx.lineTo(left, bottom);
  ctx.stroke();
}

// A dashed line for each event, and its number above; numbers that would lie on each other become one with a plus.
export function drawMarks(plot, marks, colour, font) {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.lineWidth = ratio;
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  ctx.font = `${FONT_PX * ratio}px ${font}`;
  const flags = [];
  for (const mark of marks.filter((each) => isInside(plot, each.x))) {
    const left = plot.valToPos(mark.x, "x", true);
    ctx.strokeStyle = mark.kind === "divergence" ? colour["--bad"] : colour["--ink-3"];
    ctx.setLineDash([3 * ratio, 3 * ratio]);
    upright(ctx, left, bbox.top, bbox.top + bbox.height);
    const last = flags.at(-1);
    if (last && left - last.left < 2.2 * FLAG_PX * ratio) last.text = `${last.first}+`;
    else flags.push({ left, first: mark.number, text: String(mark.number), stroke: ctx.strokeStyle });
  }
  ctx.setLineDash([]);
  for (const { left, text, stroke } of flags) {
    const middle = bbox.top - FLAG_PX * ratio;
    ctx.beginPath();
    ctx.arc(left, middle, (FLAG_PX - 0.5) * ratio, 0, 2 * Math.PI);
    ctx.fillStyle = colour["--surface"];
    ctx.fill();
    ctx.strokeStyle = stroke;
    ctx.stroke();
    ctx.fillStyle = colour["--ink-2"];
    ctx.fillText(text, left, middle);
  }
  ctx.restore();
}

// A line at the best checkpoint; in the chart of its metric also a ring, its value and its epoch.
export function drawBest(plot, best, isOwn, texts, colour, font) {
  if (!best || !isInside(plot, best.x)) return;
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio;
  const left = plot.valToPos(best.x, "x", true);
  const bottom = bbox.top + bbox.height;
  const top = isOwn ? Math.min(bottom, Math.max(bbox.top, plot.valToPos(best.value, "y", true))) : bbox.top;
  ctx.save();
  ctx.strokeStyle = colour["--ok"];
  ctx.lineWidth = ratio;
  ctx.setLineDash([2 * ratio, 3 * ratio]);
  upright(ctx, left, top, bottom);
  if (isOwn) {
    ctx.setLineDash([]);
    ctx.lineWidth = 2 * ratio;
    ctx.beginPath();
    ctx.arc(left, top, 4.5 * ratio, 0, 2 * Math.PI);
    ctx.fillStyle = colour["--surface"];
    ctx.fill();
    ctx.stroke();
    drawTexts(ctx, texts, { left, top, bottom, right: bbox.left + bbox.width, start: bbox.left }, colour, font);
  }
  ctx.restore();
}

// Beside the line, on the side with more room, and away from the ring.
function drawTexts(ctx, [first, second], box, colour, font) {
  const ratio = devicePixelRatio;
  const isLeft = box.left - box.start > 90 * ratio || box.right - box.left < 90 * ratio;
  const isLow = box.bottom - box.top > 48 * ratio;
  const line = (text, offset, look, weight) => {
    ctx.font = `${weight} ${FONT_PX * ratio}px ${font}`;
    const at = [box.left + (isLeft ? -8 : 8) * ratio, (isLow ? box.bottom - (34 - offset) * ratio : box.top - (46 - offset) * ratio)];
    ctx.lineWidth = 3 * ratio;
    ctx.strokeStyle = colour["--surface"];
    ctx.strokeText(text, ...at);
    ctx.fillStyle = look;
    ctx.fillText(text, ...at);
  };
  ctx.textAlign = isLeft ? "right" : "left";
  ctx.textBaseline = "top";
  line(first, 6, colour["--ok"], 600);
  line(second, 20, colour["--ink-2"], 400);
}

// The texts of the marks at the cursor.
export function textsAt(plot, marks) {
  const left = plot.cursor.left ?? -1;
  if (left < 0) return [];
  const isNear = (mark) => isInside(plot, mark.x) && Math.abs(plot.valToPos(mark.x, "x") - left) <= NEAR_PX;
  return marks.filter(isNear).map((mark) => `${mark.number}  ${mark.text}`);
}
