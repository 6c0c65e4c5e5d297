// Single keys: `?` lists them, `/` searches on the page, J and K go through rows, X selects, C compares.
//
// They never act in a field or with a dialog open, and not at all where the person switched them off (WCAG 2.1.4).
import { areLettersOff, isForField } from "../../keys.js";
import { dialogAt } from "./fetched-dialog.js";

const TYPED = "textarea, select, [contenteditable], [role=combobox], input:not([type=checkbox], [type=radio], [type=range], [type=button], [type=submit])";

function isShown(element) {
  return element.checkVisibility ? element.checkVisibility() : element.offsetParent !== null;
}

function rows() {
  return [...document.querySelectorAll("[data-row]")].filter(isShown);
}

function currentRow() {
  return document.activeElement?.closest("[data-row]") ?? null;
}

function go(step) {
  const all = rows();
  if (!all.length) return false;
  const at = all.indexOf(currentRow());
  const row = all[at < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + step, 0), all.length - 1)];
  const target = row.querySelector("a[href]") ?? row;
  if (target === row && row.tabIndex < 0) row.tabIndex = -1;
  target.focus();
  row.scrollIntoView({ block: "nearest" });
  return true;
}

function select() {
  const box = currentRow()?.querySelector('input[type="checkbox"]');
  box?.click();
  return Boolean(box);
}

function press(key) {
  const button = [...document.querySelectorAll(`[data-key="${CSS.escape(key)}"]`)].find((each) => isShown(each) && !each.disabled);
  button?.click();
  return Boolean(button);
}

function search() {
  const field = [...document.querySelectorAll("[data-search]")].find(isShown);
  if (!field) return false;
  field.focus();
  field.select?.();
  return true;
}

// A page says in `data-shortcuts` which keys it has besides: {"D": "Delete the selected rows"}.
function ofThePage() {
  return [...document.querySelectorAll("[data-shortcuts]")].flatMap((each) => Object.entries(JSON.parse(each.dataset.shortcuts)));
}

function keysOf(text) {
  return text.split(" ").map((name) => Object.assign(document.createElement("kbd"), { textContent: name }));
}

const help = dialogAt("parts/shortcuts");

async function showHelp() {
  if (document.querySelector("dialog[open]")) return;
  const dialog = await help();
  if (!dialog || document.querySelector("dialog[open]")) return; // pressed twice while it came
  const own = ofThePage();
  const place = dialog.querySelector("#shortcuts-page");
  place.hidden = own.length === 0;
  place.querySelector("dl").replaceChildren(
    ...own.map(([names, text]) => {
      const line = document.createElement("div");
      const term = document.createElement("dt");
      term.append(...keysOf(names).flatMap((each, number) => (number ? [" ", each] : [each])));
      line.append(term, Object.assign(document.createElement("dd"), { textContent: text }));
      return line;
    }),
  );
  dialog.showModal();
}

const ACTS = { "?": () => (showHelp(), true), "/": search, j: () => go(1), k: () => go(-1), x: select, c: () => press("c") };

function pressed(event) {
  if (event.defaultPrevented || !event.key || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const target = event.target instanceof Element ? event.target : document.body;
  if (target.closest(TYPED) || document.querySelector("dialog[open]") || areLettersOff()) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : "";
  const act = ACTS[key] ?? (key ? () => press(key) : null);
  if (act?.()) event.preventDefault();
}

// Keys that were pressed before this came act now. Where one of them leads into a field, the others are typed there.
function catchUp(early) {
  let field = null;
  for (const event of early) {
    if (!field) {
      const before = document.activeElement;
      pressed(event);
      const now = document.activeElement;
      if (now !== before && now.matches("[data-search]")) field = now;
    } else if (event.key?.length === 1 && isForField(event) && !event.target.closest?.(TYPED)) {
      field.setRangeText(event.key, field.selectionStart, field.selectionEnd, "end");
    }
  }
  field?.dispatchEvent(new Event("input", { bubbles: true }));
}

export function startShortcuts(early) {
  catchUp(early);
  document.addEventListener("keydown", pressed);
  document.addEventListener("ziggurat:shortcuts", showHelp);
}
