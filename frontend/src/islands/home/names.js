// Completion of names in the filter box: a list box of what the server knows, with type and range of each name.
//
// The field becomes a combobox; Down and Up choose, Enter or Tab takes, Escape closes. What is listened to is the list
// around it, since its parts are swapped.
const WAIT_MS = 120;

export function completeNames(element) {
  let timer = 0;
  let asked = 0;

  const box = () => document.getElementById("q");
  const list = () => document.getElementById("names");
  const options = () => [...(list()?.querySelectorAll('[role="option"]') ?? [])];
  const current = () => options().find((each) => each.getAttribute("aria-selected") === "true");

  // The answer to what was typed says of the field that its list is closed.
  const swapped = () => {
    if (!list() || list().hidden) return;
    box().setAttribute("aria-expanded", "true");
    choose(current());
  };
  const close = () => {
    clearTimeout(timer);
    asked += 1;
    if (!list()) return;
    list().hidden = true;
    list().replaceChildren();
    box().setAttribute("aria-expanded", "false");
    box().removeAttribute("aria-activedescendant");
  };
  const choose = (option) => {
    for (const each of options()) each.setAttribute("aria-selected", String(each === option));
    if (option) box().setAttribute("aria-activedescendant", option.id);
    else box().removeAttribute("aria-activedescendant");
  };
  const take = (option) => {
    const field = box();
    field.value = option.dataset.completed;
    field.focus();
    field.setSelectionRange(field.value.length, field.value.length);
    close();
    ask();
  };
  const show = async () => {
    const field = box();
    const mine = ++asked;
    const isAtEnd = field.selectionStart === field.value.length;
    if (!field.value.trim() || !isAtEnd || document.activeElement !== field) return close();
    const found = document.createElement("template");
    try {
      const answer = await fetch(`${field.dataset.names}?${new URLSearchParams({ text: field.value })}`);
      if (answer.ok) found.innerHTML = await answer.text();
    } catch {
      return; // the server is away; the page says so
    }
    if (mine !== asked || !list() || document.activeElement !== box()) return;
    if (!found.content.firstElementChild) return close();
    const before = current()?.dataset.completed; // an answer that comes late does not undo a choice
    list().replaceChildren(found.content);
    list().hidden = false;
    field.setAttribute("aria-expanded", "true");
    choose(options().find((each) => each.dataset.completed === before));
  };
  const ask = () => {
    clearTimeout(timer);
    timer = setTimeout(show, WAIT_MS);
  };

  const typed = ({ target }) => {
    if (target.id === "q") ask();
  };
  const pressed = (event) => {
    if (event.target.id !== "q" || !list() || list().hidden || event.isComposing) return;
    const all = options();
    const at = all.indexOf(current());
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      choose(all[at < 0 ? (step > 0 ? 0 : all.length - 1) : (at + step + all.length) % all.length]);
    } else if ((event.key === "Enter" || event.key === "Tab") && at >= 0) {
      event.preventDefault();
      take(all[at]);
    } else if (event.key === "Escape") {
      event.preventDefault(); // or the field is emptied
      close();
    } else if (event.key === "Enter") {
      close();
    }
  };
  // Before the field loses the focus.
  const pointed = (event) => {
    const option = event.target.closest?.('#names [role="option"]');
    if (!option) return;
    event.preventDefault();
    take(option);
  };
  const left = ({ target }) => {
    if (target.id === "q") close();
  };
  document.addEventListener("htmx:after:swap", swapped);
  element.addEventListener("input", typed);
  element.addEventListener("keydown", pressed);
  element.addEventListener("pointerdown", pointed);
  element.addEventListener("focusout", left);
  return () => {
    clearTimeout(timer);
    asked += 1;
    document.removeEventListener("htmx:after:swap", swapped);
    element.removeEventListener("input", typed);
    element.removeEventListener("keydown", pressed);
    element.removeEventListener("pointerdown", pointed);
    element.removeEventListener("focusout", left);
  };
}
