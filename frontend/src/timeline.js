// Marks in the browser's own timeline (User Timing): its tools show them, and the benchmark of pages reads them.
const marked = new Set();

export function markOnce(name) {
  if (marked.has(name)) return;
  marked.add(name);
  performance.mark(name);
}
