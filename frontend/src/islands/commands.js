// What every page can do besides its own: command palette, single keys, notifications. It comes when the page is idle.
import { isPaletteKey } from "../keys.js";
import { startNotifications } from "./commands/notifications.js";
import { startPalette } from "./commands/palette.js";
import { startShortcuts } from "./commands/shortcuts.js";

// `pressed` are the events of keys that came earlier.
export function mount(pressed) {
  startShortcuts(pressed);
  const search = document.querySelector("[data-palette]");
  if (search) startPalette(search, pressed.some(isPaletteKey));
  const bell = document.querySelector("[data-notifications]");
  if (bell) startNotifications(bell);
  document.documentElement.dataset.commands = "true";
}
