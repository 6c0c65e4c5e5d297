// What every page can do besides its own: command palette, single keys, notifications. It comes when the page is idle.
import { startNotifications } from "./commands/notifications.js";
import { startPalette } from "./commands/palette.js";
import { startShortcuts } from "./commands/shortcuts.js";

export function mount(isPaletteAwaited) {
  startShortcuts();
  const search = document.querySelector("[data-palette]");
  if (search) startPalette(search, isPaletteAwaited);
  const bell = document.querySelector("[data-notifications]");
  if (bell) startNotifications(bell);
  document.documentElement.dataset.commands = "true";
}
