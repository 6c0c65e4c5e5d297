// Small helpers: elements without HTML text, icons of the page, numbers for people, colors of tokens for a canvas.
const SVG = "http://www.w3.org/2000/svg";

export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value == null) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

export function swatch(token, dash) {
  const picture = document.createElementNS(SVG, "svg");
  picture.setAttribute("viewBox", "0 0 30 10");
  picture.setAttribute("aria-hidden", "true");
  const line = document.createElementNS(SVG, "line");
  for (const [name, value] of Object.entries({ x1: 0, x2: 30, y1: 5, y2: 5, "stroke-width": 3 })) line.setAttribute(name, value);
  if (dash) line.setAttribute("stroke-dasharray", dash.join(" "));
  line.style.stroke = `var(${token})`; // by the object model, which the policy of the pages allows
  picture.append(line);
  return picture;
}

// An icon that the page has in its template; nothing where it has none.
export function icon(name) {
  const found = document.getElementById("curve-icons")?.content.querySelector(`[data-icon="${name}"] > svg`);
  return found ? document.importNode(found, true) : "";
}

export function percentText(value) {
  if (value == null || !Number.isFinite(value)) return numberText(value);
  return `${(100 * value).toFixed(1)}\u202f%`;
}

export function numberText(value) {
  if (value == null) return "–";
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "-∞";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e6)) return value.toExponential(2).replace(/\.?0+e/, "e");
  const short = Number.isInteger(value) ? value : Number(value.toPrecision(4));
  return Math.abs(short) < 1000 ? String(short) : short.toLocaleString("en"); // with commas, as on the pages
}

export function durationText(seconds) {
  const whole = Math.round(seconds);
  if (Math.abs(seconds) < 10) return `${Number(seconds.toFixed(1))} s`;
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, "0")} s`;
  return `${Math.floor(whole / 3600)} h ${String(Math.floor((whole % 3600) / 60)).padStart(2, "0")} min`;
}

// A duration for the short place at an axis.
export function clockText(seconds) {
  const two = (value) => String(Math.round(value)).padStart(2, "0");
  if (seconds < 60) return `${Number(seconds.toFixed(1))} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}:${two(seconds % 60)} min`;
  return `${Math.floor(seconds / 3600)}:${two((seconds % 3600) / 60)} h`;
}

// A canvas does not understand light-dark() and custom properties: a real element does.
export function colours(place, tokens) {
  const probe = place.appendChild(el("span", { hidden: true }));
  const found = {};
  for (const token of tokens) {
    probe.style.color = `var(${token})`;
    found[token] = getComputedStyle(probe).color;
  }
  probe.remove();
  return found;
}

const DASHES = [[8, 4], [2, 4], [12, 4, 2, 4], [5, 2]];

// The dashes of a line by its place; null for a whole one.
export function dashOf(place) {
  return place < 2 ? null : DASHES[(place - 2) % DASHES.length];
}
