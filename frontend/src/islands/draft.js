// Saves a form as a draft when its page is left, so that the last letters before Reload or Back are in it, and sends it
// once: a second click on its button would create everything twice.
//
// What was typed earlier is saved with each check of the form. A form that is sent has no draft any more, and a check
// that comes after it would save one again.
export function mount(place) {
  const form = document.getElementById(place.dataset.form);
  let isTyped = false;
  let button = null;
  const typed = () => {
    isTyped = true;
  };
  const sent = (event) => {
    if (event.defaultPrevented) return;
    if (event.target === form && button) {
      event.preventDefault();
      return;
    }
    isTyped = false;
    if (event.target !== form) return;
    button = event.submitter ?? form;
    button.setAttribute("aria-busy", "true");
  };
  const checked = (event) => {
    if (button) event.preventDefault();
  };
  const cameBack = () => {
    button?.removeAttribute("aria-busy");
    button = null;
  };
  const left = () => {
    if (!isTyped) return;
    const fields = new FormData(form);
    for (const [name, value] of [...fields]) if (value instanceof File) fields.delete(name);
    navigator.sendBeacon(place.dataset.address, fields);
  };
  const heard = [
    [form, "input", typed],
    [document, "submit", sent],
    [document, "htmx:before:request", checked],
    [window, "pageshow", cameBack],
    [window, "beforeunload", left],
  ];
  for (const [target, kind, act] of heard) target.addEventListener(kind, act);
  return () => {
    for (const [target, kind, act] of heard) target.removeEventListener(kind, act);
  };
}
