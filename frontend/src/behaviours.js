// Small behaviors by attribute; without them a page still works as links and forms.
const THEMES = ["auto", "light", "dark"];
const YEAR_S = 365 * 24 * 3600;

function chosenTheme() {
  return document.documentElement.dataset.theme ?? "auto";
}

function showTheme(button) {
  const text = { auto: "Theme: system", light: "Theme: light", dark: "Theme: dark" }[chosenTheme()];
  button.title = text;
  button.setAttribute("aria-label", text);
}

function nextTheme(button) {
  const theme = THEMES[(THEMES.indexOf(chosenTheme()) + 1) % THEMES.length];
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  // A cookie, so that the server writes the theme into the page: no script need run before the first paint.
  const kept = theme === "auto" ? 0 : YEAR_S;
  document.cookie = `ziggurat_theme=${theme}; Path=${document.body.dataset.root}; Max-Age=${kept}; SameSite=Lax`;
  document.dispatchEvent(new CustomEvent("ziggurat:theme"));
  showTheme(button);
}

function say({ level, text }) {
  const place = document.getElementById("sayings");
  if (!place) return;
  const line = document.createElement("p");
  line.className = `saying ${level}`;
  line.textContent = text;
  place.replaceChildren(line);
  setTimeout(() => line.remove(), 8000);
}

async function copy(button) {
  const from = document.getElementById(button.dataset.copy);
  try {
    await navigator.clipboard.writeText(from.value ?? from.textContent);
    say({ level: "info", text: "Copied." });
  } catch {
    // Browsers give no clipboard to pages that come over plain http from another machine.
    say({ level: "error", text: "The browser does not allow copying here. Select the text and press Ctrl C." });
  }
}

function checkAll(box) {
  for (const other of document.querySelectorAll(`input[type="checkbox"][name="${box.dataset.checkAll}"]`)) {
    if (other.checked === box.checked) continue;
    other.checked = box.checked;
    other.dispatchEvent(new Event("change", { bubbles: true }));
  }
}

// As long as the editor is not there, this is for the field that it takes the place of, with the cursor where it stands.
function goToLine(number) {
  const area = document.querySelector('[data-island="editor"] textarea');
  if (!area || area.hidden) return;
  const before = area.value.split("\n").slice(0, number - 1);
  const at = before.reduce((length, line) => length + line.length + 1, 0);
  area.focus();
  area.setSelectionRange(at, at);
}

// At the end of the code, two blank lines below what stands there.
function addCode(code) {
  const area = document.querySelector('[data-island="editor"] textarea');
  if (!area || area.hidden) return;
  area.value = `${area.value.trimEnd()}\n\n\n${code}\n`;
  area.focus();
  area.dispatchEvent(new Event("input", { bubbles: true }));
}

function clicked(event) {
  const target = event.target instanceof Element ? event.target : null;
  const button = target?.closest("[data-copy], [data-theme-button], [data-opens], [data-closes], [data-goto-line], [data-add-code]");
  if (!button) return;
  if (button.dataset.copy) copy(button);
  else if (button.dataset.gotoLine) goToLine(Number(button.dataset.gotoLine));
  else if (button.dataset.addCode) addCode(button.dataset.addCode);
  else if (button.hasAttribute("data-theme-button")) nextTheme(button);
  else if (button.dataset.opens) document.getElementById(button.dataset.opens)?.showModal();
  else button.closest("dialog")?.close();
}

const TWICE_MS = 1000;
const sent = new WeakMap();

// A double click sends a form once. What is sent by htmx waits for its answer by itself, and what an island answers
// without a request may come as often as a person types.
function isSecond(form) {
  return performance.now() - (sent.get(form) ?? -Infinity) < TWICE_MS;
}

function submitting(event) {
  const asked = event.submitter?.dataset.confirm ?? event.target.dataset?.confirm;
  if ((asked && !window.confirm(asked)) || isSecond(event.target)) {
    event.preventDefault();
    event.stopImmediatePropagation();
  }
}

function submitted({ target: form, defaultPrevented }) {
  if (!defaultPrevented && form.getAttribute("method") === "post") sent.set(form, performance.now());
}

function showThemes() {
  for (const button of document.querySelectorAll("[data-theme-button][hidden]")) {
    button.hidden = false;
    showTheme(button);
  }
}

// How high a column is that stays beside a form: its style keeps its end in sight (`.beside`).
function measureColumns() {
  const heights = new ResizeObserver((changes) => {
    for (const { target } of changes) target.style.setProperty("--beside-height", `${target.offsetHeight}px`);
  });
  for (const column of document.querySelectorAll(".beside")) {
    heights.observe(column);
    column.addEventListener("focusin", ({ target }) => showInColumn(column, target));
  }
}

const BAR_PX = 48; // of the bar at the top, which lies over the page

// A browser does not scroll to what gets the focus at the top of such a column where it is higher than the window.
function showInColumn(column, target) {
  const { top, bottom } = target.getBoundingClientRect();
  if (top >= BAR_PX && bottom <= innerHeight) return;
  column.style.position = "static";
  target.scrollIntoView({ block: "nearest" });
  column.style.position = "";
}

export function startBehaviours() {
  measureColumns();
  showThemes();
  document.addEventListener("htmx:after:swap", showThemes); // who goes back gets a page from the server once more
  // Before the islands, which show how many are ticked.
  for (const box of document.querySelectorAll("[data-check-all]")) if (box.checked) checkAll(box);
  document.addEventListener("click", clicked);
  document.addEventListener("submit", submitting, true);
  window.addEventListener("submit", submitted); // after every island
  document.addEventListener("change", (event) => {
    if (event.target.dataset?.checkAll) checkAll(event.target);
  });
  document.addEventListener("ziggurat:say", (event) => say(event.detail));
  document.documentElement.dataset.ready = "true"; // buttons that need a script are shown from now on
}
