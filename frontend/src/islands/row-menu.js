// The menu of a row: one popover for all rows, filled by the server when it is opened, so that it knows the job's state.
//
// Without a script the link that opens it leads to the job's own page, which has the same buttons.
import htmx from "../htmx-setup.js";

const ANCHOR = "--row-menu";
const SAME_PRESS_MS = 400;
let wanted = null;
let closed = { opener: null, at: 0 };

// A press on the link of an open menu closes the menu first, by itself; it must not be opened again by the same press.
function isSamePress(opener) {
  return closed.opener === opener && performance.now() - closed.at < SAME_PRESS_MS;
}

export async function openMenu(menu, opener) {
  if (isSamePress(opener)) return;
  wanted = opener;
  menu.replaceChildren(); // where the studio does not answer, nobody must see the menu of another job here
  await htmx.ajax("GET", menu.dataset.menus + opener.dataset.menu, { source: menu, target: menu, swap: "innerHTML" });
  if (wanted !== opener || !opener.isConnected || !menu.childElementCount) return;
  menu.dataset.opener = opener.id;
  opener.style.setProperty("anchor-name", ANCHOR);
  menu.showPopover({ source: opener });
  menu.querySelector("a, button")?.focus();
}

export function prepareMenu(menu) {
  menu.addEventListener("beforetoggle", ({ newState }) => {
    if (newState !== "closed") return;
    const opener = document.getElementById(menu.dataset.opener);
    opener?.style.removeProperty("anchor-name");
    closed = { opener, at: performance.now() };
    wanted = null;
  });
  menu.addEventListener("click", ({ target }) => {
    if (!target.closest("a, button")) return;
    menu.hidePopover();
    closed = { opener: null, at: 0 }; // by a choice, not by a press on its link: the next press opens it
  });
}
