// Saves the boxes on the server soon after each change, one request at a time. A change is made on a state of the
// server: where somebody saved a newer one, nothing is overwritten, and the person decides. What is not saved yet is
// kept in the tab, so that a reload or a server that is away loses nothing.
const SETTLE_MS = 350;
const AGAIN_MS = 4000;

function kept(key) {
  try {
    return JSON.parse(sessionStorage.getItem(key) ?? "null");
  } catch {
    return null;
  }
}

function keep(key, value) {
  try {
    if (value) sessionStorage.setItem(key, JSON.stringify(value));
    else sessionStorage.removeItem(key);
  } catch {
    // Then the page alone has it.
  }
}

// `show(state, message)`: "saved", "waiting", "saving", "failed" or "refused". `outdated(current)`: newer boxes came.
export function saverOf({ api, key, version, plain, show, saved, outdated }) {
  const name = `ziggurat.boxes.${key}`;
  let on = version;
  let isDirty = false;
  let isStopped = false; // until the person decides what becomes of newer boxes
  let running = null;
  let timer = 0;

  async function send() {
    const objects = plain();
    isDirty = false;
    show("saving", "");
    let answer = null;
    let content = {};
    try {
      const body = JSON.stringify({ version: on, objects });
      answer = await fetch(api, { method: "PUT", body, headers: { "Content-Type": "application/json", Accept: "application/json" }, keepalive: body.length < 60_000 });
      content = await answer.json();
    } catch {
      answer = null;
    }
    if (answer?.ok) {
      on = content.version;
      if (!isDirty) keep(name, null);
      saved(content);
      show(isDirty ? "waiting" : "saved", "");
      if (isDirty) plan(SETTLE_MS);
      return;
    }
    isDirty = true;
    if (content.error === "outdated") {
      isStopped = true;
      show("refused", "");
      outdated(content.details.current);
    } else if (answer && answer.status < 500 && answer.status !== 401) {
      show("refused", [content.rule, content.received && `Received: ${content.received}.`, content.advice].filter(Boolean).join(" "));
    } else {
      show("failed", answer?.status === 401 ? "You are logged out; log in in another tab." : "The studio is not reachable.");
      plan(AGAIN_MS);
    }
  }

  function plan(wait) {
    clearTimeout(timer);
    timer = setTimeout(flush, wait);
  }

  async function flush() {
    clearTimeout(timer);
    while (running) await running; // another one that waited may have begun to send
    if (!isDirty || isStopped) return;
    running = send().finally(() => {
      running = null;
    });
    await running;
  }

  function changed() {
    isDirty = true;
    keep(name, { version: on, objects: plain() });
    if (isStopped) return;
    show("waiting", "");
    plan(SETTLE_MS);
  }

  // Brings the state back that the server had before the newest; null where it does not.
  async function undo() {
    try {
      const answer = await fetch(`${api}/undo`, { method: "POST", body: JSON.stringify({ version: on }), headers: { "Content-Type": "application/json", Accept: "application/json" } });
      const content = await answer.json();
      if (content.error === "outdated") {
        isStopped = true;
        outdated(content.details.current);
      } else if (!answer.ok) show("refused", content.rule ?? "");
      if (!answer.ok) return null;
      on = content.version;
      saved(content);
      return content;
    } catch {
      show("failed", "The studio is not reachable.");
      return null;
    }
  }

  return {
    changed,
    flush,
    undo,
    get isDirty() {
      return isDirty || running !== null;
    },
    get version() {
      return on;
    },
    // What the tab still had from before a reload; null for nothing.
    left: () => kept(name),
    // Goes on from a newer state of the server: with its boxes, or with those of this page put on top.
    goOn(newer, isMine) {
      on = newer;
      isStopped = false;
      isDirty = isMine;
      if (isMine) return changed();
      keep(name, null);
      return show("saved", "");
    },
    stop() {
      isStopped = true;
    },
    end: () => clearTimeout(timer),
  };
}
