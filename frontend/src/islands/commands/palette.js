// The command palette: Ctrl K or its button opens it; what it shows comes from the server, on the first use.
import { isForField, isPaletteKey } from "../../keys.js";
import { dialogAt, sayNoAnswer } from "./fetched-dialog.js";

const WAIT_MS = 80;

class Palette {
  constructor(dialog) {
    this.dialog = dialog;
    this.field = dialog.querySelector("#palette-text");
    this.list = dialog.querySelector("#palette-list");
    this.count = dialog.querySelector("#palette-count");
    this.asked = null;
    this.timer = 0;
    this.isNew = true; // whether it was never open
    this.isStale = false; // whether the list is of an earlier text
    this.isWanted = false; // whether Enter was pressed before the list of this text was there
    this.field.addEventListener("input", () => {
      this.asked?.abort(); // its list is of an earlier text
      this.isStale = true;
      this.isWanted = false;
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.search(), WAIT_MS);
    });
    this.field.addEventListener("keydown", (event) => this.key(event));
    this.field.form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (!this.isStale) {
        this.open(this.current());
        return;
      }
      this.isWanted = true;
      clearTimeout(this.timer);
      this.search();
    });
    this.list.addEventListener("click", (event) => {
      const option = event.target.closest("[role=option]");
      if (option?.dataset.act) {
        event.preventDefault();
        this.open(option);
      }
    });
    this.choose(0);
  }

  options() {
    return [...this.list.querySelectorAll("a[role=option]")];
  }

  current() {
    return this.list.querySelector('[aria-selected="true"]');
  }

  choose(place) {
    const options = this.options();
    const at = options.length ? (place + options.length) % options.length : -1;
    options.forEach((each, number) => each.setAttribute("aria-selected", String(number === at)));
    if (at < 0) this.field.removeAttribute("aria-activedescendant");
    else this.field.setAttribute("aria-activedescendant", options[at].id);
    options[at]?.scrollIntoView({ block: "nearest" });
  }

  key(event) {
    const steps = { ArrowDown: 1, ArrowUp: -1 };
    if (!(event.key in steps)) return;
    event.preventDefault();
    this.choose(this.options().indexOf(this.current()) + steps[event.key]);
  }

  async search() {
    this.asked?.abort();
    this.asked = new AbortController();
    const { signal } = this.asked;
    try {
      const query = new URLSearchParams({ q: this.field.value });
      const answer = await fetch(`${document.body.dataset.root}parts/palette?${query}`, { signal });
      if (!answer.ok) throw new Error(`${answer.status}`);
      this.list.innerHTML = await answer.text();
    } catch {
      if (!signal.aborted) sayNoAnswer();
      return; // a later letter asks again
    }
    this.isStale = false;
    this.choose(0);
    const count = this.options().length;
    this.count.textContent = count === 1 ? "1 result" : `${count} results`;
    if (this.isWanted && this.dialog.open) this.open(this.current());
  }

  open(option) {
    this.isWanted = false;
    if (!option) return;
    const { act } = option.dataset;
    this.dialog.close();
    if (act === "theme") document.querySelector("[data-theme-button]")?.click();
    else if (act) document.dispatchEvent(new CustomEvent(`ziggurat:${act}`));
    else location.assign(option.href);
  }

  // Runs that began or ended since it was open are in the list as they are now. `keys` came before it did.
  show(keys) {
    if (!this.isNew || keys.text) {
      this.field.value = keys.text;
      this.isStale = true;
      this.isWanted = false;
      this.search();
    }
    this.isNew = false;
    this.dialog.showModal();
    this.field.focus();
    if (keys.isEntered) this.field.form.requestSubmit();
  }
}

// What is typed while the palette is on its way: no letter is lost, and none is a single key of the page. Escape or a
// press of the pointer gives it up.
class KeysAhead {
  constructor(pressed) {
    this.text = "";
    this.isEntered = false;
    this.isLeft = false;
    this.heard = new AbortController();
    const options = { capture: true, signal: this.heard.signal };
    window.addEventListener("pointerdown", () => this.leave(), options);
    window.addEventListener("keydown", (event) => {
      if (!isForField(event)) return;
      event.preventDefault();
      event.stopImmediatePropagation();
      this.take(event.key);
    }, options);
    pressed.filter(isForField).forEach(({ key }) => this.take(key));
  }

  take(key) {
    if (key === "Escape") this.leave();
    else if (key === "Enter") this.isEntered = true;
    else if (key === "Backspace") this.text = this.text.slice(0, -1);
    else if (!this.isEntered) this.text += key;
  }

  leave() {
    this.isLeft = true;
    this.end();
  }

  end() {
    this.heard.abort();
  }
}

// With `pressed` it opens at once: its key was pressed before this came, and then these.
export function startPalette(button, pressed) {
  const palette = dialogAt("parts/palette?dialog=true", (dialog) => new Palette(dialog));
  if (/Mac|iPhone|iPad/.test(navigator.platform)) {
    const key = button.querySelector("kbd");
    if (key) key.textContent = "⌘ K";
  }
  let isComing = false;
  const open = async (early = []) => {
    if (isComing || document.querySelector("dialog[open]")) return;
    isComing = true;
    const keys = new KeysAhead(early);
    const found = await palette();
    keys.end();
    isComing = false;
    if (found && !keys.isLeft && !document.querySelector("dialog[open]")) found.show(keys);
  };
  button.setAttribute("aria-label", button.textContent.trim()); // with the key that one sees
  document.addEventListener("keydown", (event) => {
    if (!isPaletteKey(event)) return;
    event.preventDefault();
    open();
  });
  button.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return; // a link that is opened elsewhere
    event.preventDefault();
    open();
  });
  if (pressed) open(pressed);
}
