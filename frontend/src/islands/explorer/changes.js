// Corrections of samples that are not a version yet: sample → label, or null for one that is left out. They live as
// long as the tab, so that one can turn pages, go to a sample and come back.

function kept(key) {
  try {
    return JSON.parse(sessionStorage.getItem(key) ?? "null");
  } catch {
    return null;
  }
}

function keep(key, value) {
  try {
    if (value) sessionStorage.setItem(key, JSON.stringify(value));
    else sessionStorage.removeItem(key);
  } catch {
    // Then they hold for this page alone.
  }
}

function sentence(edits) {
  const values = Object.values(edits);
  const excluded = values.filter((label) => label === null).length;
  const labels = values.length - excluded;
  const parts = [labels && `${labels} relabeled`, excluded && `${excluded} excluded`];
  return parts.filter(Boolean).join(", ");
}

export function changesOf(place) {
  const key = `ziggurat.changes.${place.dataset.dataset}`;
  const bar = place.querySelector("#changes");
  const names = new Map(JSON.parse(place.dataset.labels || "[]"));
  const found = kept(key);
  // What was sent and came back refused is still to be done; what was sent and taken is a version now.
  let history = found && (!found.sent || "refused" in place.dataset) ? found.history : [];

  function edits() {
    const now = {};
    for (const step of history) Object.assign(now, step);
    for (const [sample, label] of Object.entries(now)) if (label === undefined || label === "") delete now[sample];
    return now;
  }

  function paint(item, label, isChanged) {
    const said = item.querySelector("[data-shown-label]");
    if (!said) return;
    said.dataset.before ??= said.textContent;
    if (!isChanged) {
      delete item.dataset.changed;
      said.textContent = said.dataset.before;
      return;
    }
    item.dataset.changed = label === null ? "exclude" : "label";
    said.textContent = label === null ? said.dataset.before : (names.get(label) ?? label);
  }

  function show() {
    const now = edits();
    const count = Object.keys(now).length;
    for (const item of place.querySelectorAll("[data-place]")) paint(item, now[item.dataset.place], item.dataset.place in now);
    for (const form of place.querySelectorAll("[data-correction]")) {
      const sample = form.elements.single.value;
      const isChanged = sample in now;
      paint(form, now[sample], isChanged);
      for (const button of form.querySelectorAll("[data-set-label]")) {
        button.dataset.before ??= button.getAttribute("aria-pressed") ?? "false";
        const pressed = isChanged ? now[sample] === button.dataset.setLabel : button.dataset.before === "true";
        button.setAttribute("aria-pressed", String(pressed));
      }
      const exclude = form.querySelector("[data-exclude]");
      if (exclude) exclude.setAttribute("aria-pressed", String(isChanged && now[sample] === null));
      const undo = form.querySelector("[data-undo]");
      if (undo) undo.hidden = !history.length;
    }
    if (!bar) return;
    bar.hidden = !count;
    const said = bar.querySelector("#changes-count");
    if (said.textContent !== sentence(now)) said.textContent = sentence(now);
    bar.querySelector("#edits").value = count ? JSON.stringify(now) : "";
  }

  function store(sent = false) {
    keep(key, history.length ? { history, sent } : null);
    show();
  }

  function set(samples, label) {
    history.push(Object.fromEntries(samples.map((sample) => [sample, label])));
    store();
  }

  function undo() {
    history.pop();
    store();
    // The button that was pressed may be gone: the focus stays in the page.
    if (document.activeElement === document.body) place.querySelector(".current [data-step], #sample-title")?.focus();
  }

  function toggleExcluded(samples) {
    const now = edits();
    const all = samples.every((sample) => now[sample] === null);
    set(samples, all ? "" : null);
  }

  // It is one more step, so that Undo brings the corrections back.
  function discard() {
    set(Object.keys(edits()), "");
    (place.querySelector(".current [data-step]") ?? place.querySelector("a[href]"))?.focus();
  }

  const clicked = ({ target }) => {
    if (target.closest("#changes-undo, [data-undo]")) undo();
    else if (target.closest("#changes-discard")) discard();
  };
  const submitted = ({ target }) => {
    if (target === bar) keep(key, { history, sent: true });
  };
  place.addEventListener("click", clicked);
  place.addEventListener("submit", submitted);
  show();
  return {
    set,
    undo,
    toggleExcluded,
    show,
    end() {
      place.removeEventListener("click", clicked);
      place.removeEventListener("submit", submitted);
    },
  };
}
