// Tells of runs that finished or failed while this tab is open: a message with one action, and a list under the bell.
//
// The list is kept for the tab. Messages of the system come only after the person asked for them, and while the tab is
// hidden: its event stream is closed then, so that it asks from time to time.
const KEY = "ziggurat-notifications";
const SYSTEM = "ziggurat-system-notifications";
const MOST = 20;
const SHOWN_MS = 10_000;
const TOGETHER_MS = 300;
const HIDDEN_MS = 30_000;

function kept() {
  try {
    return JSON.parse(sessionStorage.getItem(KEY)) ?? { lines: [], unread: 0 };
  } catch {
    return { lines: [], unread: 0 };
  }
}

function keep(state) {
  try {
    sessionStorage.setItem(KEY, JSON.stringify(state));
  } catch {
    // A browser that keeps nothing shows messages all the same.
  }
}

function wantsSystem() {
  try {
    return "Notification" in window && Notification.permission === "granted" && localStorage.getItem(SYSTEM) === "on";
  } catch {
    return false; // a browser that keeps nothing
  }
}

class Notifications {
  constructor(bell) {
    this.bell = bell;
    this.ids = new Set();
    this.timer = 0;
    this.known = new Set(kept().lines.map(([id]) => id));
    this.build();
    this.show();
  }

  build() {
    this.panel = document.createElement("div");
    this.panel.id = "notifications";
    this.panel.popover = "auto";
    this.panel.className = "notifications below-end";
    this.panel.setAttribute("role", "dialog");
    this.panel.setAttribute("aria-label", "Notifications");
    const title = Object.assign(document.createElement("h2"), { textContent: "Notifications" });
    this.nothing = Object.assign(document.createElement("p"), { className: "soft sm", textContent: "Runs that finish or fail while this tab is open appear here." });
    this.list = document.createElement("ul");
    this.panel.append(title, this.nothing, this.list, this.systemSwitch());
    this.bell.after(this.panel);
    this.bell.popoverTargetElement = this.panel;
    this.bell.setAttribute("aria-haspopup", "dialog");
    this.panel.addEventListener("toggle", (event) => {
      if (event.newState !== "open") return;
      keep({ ...kept(), unread: 0 });
      this.show();
    });
  }

  systemSwitch() {
    const line = document.createElement("p");
    line.className = "sm";
    if (!("Notification" in window)) return line;
    const box = Object.assign(document.createElement("input"), { type: "checkbox", id: "system-notifications", checked: wantsSystem() });
    box.setAttribute("role", "switch");
    box.className = "switch";
    const label = Object.assign(document.createElement("label"), { htmlFor: box.id, textContent: "Also notify me outside of this tab" });
    box.addEventListener("change", async () => {
      if (box.checked && (await Notification.requestPermission()) !== "granted") box.checked = false;
      try {
        localStorage.setItem(SYSTEM, box.checked ? "on" : "off");
      } catch {
        box.checked = false;
      }
    });
    line.className = "row sm";
    line.append(box, label);
    return line;
  }

  show() {
    const { lines, unread } = kept();
    this.nothing.hidden = lines.length > 0;
    this.list.innerHTML = lines.map(([, html]) => html).join(""); // the server's own lines
    this.style(this.list.querySelector("[data-sheet]")?.dataset.sheet);
    this.bell.classList.toggle("has-news", unread > 0);
    this.bell.setAttribute("aria-label", unread ? `Notifications, ${unread} new` : "Notifications");
    let dot = this.bell.querySelector(".dot");
    if (unread && !dot) this.bell.append((dot = Object.assign(document.createElement("span"), { className: "dot" })));
    else if (!unread) dot?.remove();
  }

  style(sheet) {
    if (!sheet || this.sheet) return;
    this.sheet = document.createElement("link");
    this.sheet.rel = "stylesheet";
    this.sheet.href = sheet;
    document.head.append(this.sheet);
  }

  hear(detail) {
    if (detail.kind !== "state" || !detail.id) return;
    this.ids.add(detail.id);
    this.timer ||= setTimeout(() => this.ask(), TOGETHER_MS);
  }

  async ask() {
    this.timer = 0;
    const query = new URLSearchParams([...this.ids].slice(-50).map((id) => ["job", id]));
    this.ids.clear();
    for (const line of await this.fetch(query)) this.toast(line);
  }

  // Returns the lines that are new, and keeps them.
  async fetch(query) {
    let text = "";
    try {
      const answer = await fetch(`${document.body.dataset.root}parts/notifications?${query}`);
      if (answer.ok) text = await answer.text();
    } catch {
      // The server is away; the page says so.
    }
    const holder = document.createElement("template");
    holder.innerHTML = text;
    const found = [...holder.content.querySelectorAll("li")].filter((line) => !this.known.has(line.dataset.notification));
    if (!found.length) return [];
    for (const line of found) this.known.add(line.dataset.notification);
    const { lines, unread } = kept();
    const more = found.map((line) => [line.dataset.notification, line.outerHTML]);
    keep({ lines: [...more, ...lines].slice(0, MOST), unread: unread + found.length });
    this.show();
    return found;
  }

  toast(line) {
    const place = document.getElementById("sayings");
    if (!place || place.querySelector("[data-notification]")?.dataset.notification === line.dataset.notification) return;
    const shown = document.createElement("div");
    shown.className = "saying info toast";
    shown.dataset.notification = line.dataset.notification;
    shown.append(...line.cloneNode(true).childNodes);
    const close = Object.assign(document.createElement("button"), { type: "button", className: "icon-button", textContent: "×" });
    close.setAttribute("aria-label", "Close");
    close.addEventListener("click", () => shown.remove());
    shown.append(close);
    place.replaceChildren(shown);
    // What a person points at or has the focus in stays.
    const end = () => (shown.matches(":hover, :focus-within") ? setTimeout(end, SHOWN_MS) : shown.remove());
    setTimeout(end, SHOWN_MS);
  }

  async askHidden() {
    if (!document.hidden || !wantsSystem()) return;
    for (const line of await this.fetch(new URLSearchParams({ within_s: "120" }))) {
      const said = new Notification(line.dataset.title, { body: line.dataset.text, tag: line.dataset.notification });
      said.onclick = () => {
        window.focus();
        location.assign(line.querySelector("a").href);
      };
    }
  }
}

export function startNotifications(bell) {
  const notifications = new Notifications(bell);
  document.body.addEventListener("notice", (event) => notifications.hear(event.detail));
  setInterval(() => notifications.askHidden(), HIDDEN_MS);
  bell.hidden = false;
}
