// The one script of every page: htmx, the event stream, islands, and small behaviors that a page works without.
import htmx from "./htmx-setup.js";
import { startBehaviours } from "./behaviours.js";
import { catchUp } from "./catch-up.js";
import { startIslands } from "./islands.js";
import { startLive } from "./live.js";

startBehaviours();
startIslands();
htmx.initialize(); // it would wait for the first paint; doing it twice does nothing
catchUp();
startLive();
