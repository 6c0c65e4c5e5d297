// A person may switch off keys that are a single letter or digit.
export function areLettersOff() {
  return /(^|; )ziggurat_keys=off(;|$)/.test(document.cookie);
}
