// A person may switch off keys that are a single letter or digit.
export function areLettersOff() {
  return /(^|; )ziggurat_keys=off(;|$)/.test(document.cookie);
}

// Ctrl K, or ⌘ K. A browser that fills in a field sends events without a key.
export function isPaletteKey(event) {
  return event.key?.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey;
}

// Keys that are for the palette's field while the palette is on its way.
export function isForField(event) {
  const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey && !event.isComposing;
  return isPlain && (event.key?.length === 1 || ["Enter", "Backspace", "Escape"].includes(event.key));
}
