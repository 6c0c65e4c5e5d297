// What this browser remembers of how curves are looked at: settings, and what is pinned, by the name of a curve.
const SETTINGS = "ziggurat.curves";
const PINNED = "ziggurat.curves.pinned";
const USUAL = { smoothing: 0.6, isLog: false, x: "epoch", chosen: {} };

function read(name, usual) {
  try {
    return JSON.parse(localStorage.getItem(name)) ?? usual;
  } catch {
    return usual;
  }
}

function write(name, value) {
  try {
    localStorage.setItem(name, JSON.stringify(value));
  } catch {
    // Then it holds for this page alone.
  }
}

export function readSettings() {
  return { ...USUAL, ...read(SETTINGS, {}) };
}

export function writeSettings(settings) {
  write(SETTINGS, settings);
}

export function readPinned() {
  const found = read(PINNED, []);
  return new Set(Array.isArray(found) ? found : []);
}

export function writePinned(pinned) {
  write(PINNED, [...pinned]);
}
