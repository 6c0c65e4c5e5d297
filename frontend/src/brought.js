// Islands that a page brings as scripts of its own, beside that of every page: they run right after that one, where one
// that is asked for then would come behind the first layout of the page.
export const BROUGHT = "ziggurat:brought";
export const brought = (globalThis.zigguratIslands ??= {});

export function bring(islands) {
  Object.assign(brought, islands);
  document.dispatchEvent(new Event(BROUGHT));
}
