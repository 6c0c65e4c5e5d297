// The one script of every page: htmx, the event stream, islands, and small behaviors that a page works without.
import built from "built-islands";
import htmx from "./htmx-setup.js";
import { startBehaviours } from "./behaviours.js";
import { catchUp } from "./catch-up.js";
import { pageStarted, startIslands } from "./islands.js";
import { isForField, isPaletteKey } from "./keys.js";
import { startLive } from "./live.js";

startBehaviours();
startIslands();
htmx.initialize(); // it would wait for the first paint; doing it twice does nothing
catchUp();
startLive();
pageStarted();

// Palette, single keys and notifications come when the page itself is at work. What is pressed until then waits for them.
const whenIdle = globalThis.requestIdleCallback ?? ((act) => setTimeout(act, 200));
if (document.querySelector("[data-palette]")) {
  const pressed = [];
  const early = (event) => {
    if (isPaletteKey(event) || (isForField(event) && pressed.some(isPaletteKey))) event.preventDefault();
    pressed.push(event);
  };
  document.addEventListener("keydown", early);
  const commands = async () => {
    const forget = () => document.removeEventListener("keydown", early); // also if it does not come: keys are then the page's
    const { mount } = await built.commands().finally(forget);
    mount(pressed);
  };
  whenIdle(commands);
}
