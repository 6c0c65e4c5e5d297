// Links that an island follows in its own way: in one place for all of them, where htmx would prepare each.

// Returns the link that was pressed plainly; with a key held, or another button, a browser does as it always does.
export function pressedLink(event, selector) {
  const isPlain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
  const link = isPlain ? event.target.closest(selector) : null;
  if (link) event.preventDefault();
  return link;
}
