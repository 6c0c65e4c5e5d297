// A person may switch off keys that are a single letter or digit.
export function areLettersOff() {
  return /(^|; )ziggurat_keys=off(;|$)/.test(document.cookie);
}

// Ctrl K, or ⌘ K. A browser that fills in a field sends events without a key.
export function isPaletteKey(event) {
  return event.key?.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey;
}
