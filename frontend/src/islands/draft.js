// Saves a form as a draft when its page is left, so that the last letters before Reload or Back are in it, and sends it
// once: a second click on its button would create everything twice.
//
// A name for this tab stands in the address, so that another tab does not overwrite its draft: that of the draft that was
// saved last where no tab holds it any more, else a new one. A lock says that a tab holds it; the browser may let go of
// that of a page which is left only after the next one has asked. What a page under a new name shows is saved at once.
//
// What was typed earlier is saved with each check of the form. A form that is sent has no draft any more, and a check
// that comes after it would save one again.
const LAST = "ziggurat:draft:";

const held = (name) => new Promise((told) => {
  if (!navigator.locks) return told(new URL(location.href).searchParams.get("draft") === name); // not by HTTPS
  navigator.locks.request(`draft ${name}`, { ifAvailable: true }, (lock) => {
    told(Boolean(lock));
    return lock ? new Promise(() => {}) : undefined; // as long as the page is there
  });
});

// Returns whether the name is a new one.
async function takeName() {
  const address = new URL(location.href);
  const key = LAST + address.pathname;
  let name = address.searchParams.get("draft") ?? localStorage.getItem(key);
  const isNew = !name || !(await held(name));
  if (isNew) {
    name = Array.from(crypto.getRandomValues(new Uint8Array(6)), (byte) => byte.toString(16).padStart(2, "0")).join("");
    held(name);
  }
  if (address.searchParams.get("draft") !== name) {
    address.searchParams.set("draft", name);
    history.replaceState(history.state, "", address);
  }
  return isNew;
}

export function mount(place) {
  const form = document.getElementById(place.dataset.form);
  const showsDraft = Boolean(document.getElementById("draft-state")?.childElementCount);
  let isTyped = false;
  let button = null;
  const typed = () => {
    isTyped = true;
    localStorage.setItem(LAST + location.pathname, new URL(location.href).searchParams.get("draft") ?? "");
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
  const save = () => {
    const fields = new FormData(form);
    for (const [name, value] of [...fields]) if (value instanceof File) fields.delete(name);
    navigator.sendBeacon(place.dataset.address, fields);
  };
  const left = () => {
    if (isTyped) save();
  };
  takeName().then((isNew) => {
    if (!isNew || !showsDraft || button) return;
    typed();
    save();
  });
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
