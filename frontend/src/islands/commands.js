// What every page can do besides its own: command palette, single keys, notifications. It comes when the page is idle.
import { isPaletteKey } from "../keys.js";
import { startNotifications } from "./commands/notifications.js";
import { startPalette } from "./commands/palette.js";
import { startShortcuts } from "./commands/shortcuts.js";

// `pressed` are the events of keys that came earlier; those behind the palette's key are for its field.
export function mount(pressed) {
  const at = pressed.findIndex(isPaletteKey);
  startShortcuts(at < 0 ? pressed : pressed.slice(0, at));
  const search = document.querySelector("[data-palette]");
  if (search) startPalette(search, at < 0 ? null : pressed.slice(at + 1));
  const bell = document.querySelector("[data-notifications]");
  if (bell) startNotifications(bell);
  document.documentElement.dataset.commands = "true";
}
