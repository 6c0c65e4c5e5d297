// The event stream of a page: one connection for all topics, closed while the page is hidden, retried without end.
//
// A notice becomes DOM events on <body>: `notice` with its detail, `notice-jobs` by its topic (`notice-job` for
// `job:ID`), and all of them after `reload`, when nobody knows what was missed.
const RETRY_MS = [500, 1000, 2000, 5000, 10000];
let source = null;
let last = document.body.dataset.last ?? ""; // what the page shows is as old as that
let server = "";
let failures = 0;
let timer = 0;

function tell(topic, detail) {
  document.body.dispatchEvent(new CustomEvent(`notice-${topic.split(":")[0]}`, { detail }));
}

function topics() {
  return (document.body.dataset.topics ?? "").split(",").filter(Boolean);
}

function pass(detail) {
  document.body.dispatchEvent(new CustomEvent("notice", { detail }));
  if (detail.kind === "reload") {
    const names = new Set(topics().map((topic) => topic.split(":")[0]));
    for (const name of names) tell(name, detail);
  } else tell(detail.topic, detail);
}

function say(isConnected) {
  document.body.dataset.live = isConnected ? "on" : "off";
  const place = document.getElementById("connection");
  if (place) place.hidden = isConnected || failures < 2;
}

function close() {
  clearTimeout(timer);
  source?.close();
  source = null;
}

async function retry() {
  close();
  failures += 1;
  say(false);
  timer = setTimeout(async () => {
    try {
      const answer = await fetch(document.body.dataset.me, { headers: { Accept: "application/json" } });
      if (answer.status === 401) {
        location.assign(`${document.body.dataset.login}?next=${encodeURIComponent(location.pathname + location.search)}`);
        return;
      }
    } catch {
      // The server is away; the next try will tell.
    }
    open();
  }, RETRY_MS[Math.min(failures, RETRY_MS.length) - 1]);
}

function open() {
  if (source || document.hidden || !topics().length) return;
  const query = new URLSearchParams({ topics: topics().join(",") });
  if (last) query.set("last_event_id", last);
  source = new EventSource(`${document.body.dataset.events}?${query}`);
  const take = (event) => {
    if (event.lastEventId) last = event.lastEventId;
    pass(JSON.parse(event.data));
  };
  for (const kind of ["state", "events", "added", "deleted", "changed", "waiting", "reload"]) {
    source.addEventListener(kind, take);
  }
  source.addEventListener("hello", (event) => {
    const hello = JSON.parse(event.data);
    if (event.lastEventId) last = event.lastEventId;
    const isOther = server && server !== hello.server;
    const isBack = failures > 0;
    server = hello.server;
    failures = 0;
    say(true);
    if (isOther || isBack) pass({ topic: "", kind: "reload", id: "", offset: 0 });
  });
  source.onerror = () => retry();
}

export function startLive() {
  if (!document.body.dataset.events) return;
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  window.addEventListener("pagehide", close);
  window.addEventListener("pageshow", open);
  open();
}
