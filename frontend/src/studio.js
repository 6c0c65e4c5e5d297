// The one script of every page: htmx, the event stream, islands, and small behaviours that a page works without.
import htmx from "./htmx-setup.js";
import { startIslands } from "./islands.js";
import { startLive } from "./live.js";
import { startBehaviours } from "./behaviours.js";

startIslands();
startBehaviours();
htmx.initialize(); // it would wait for the first paint; doing it twice does nothing
startLive();
