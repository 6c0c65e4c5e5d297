// Draws the graph of a network: modules are buttons that open and close; buttons and keys zoom and move.
import { Network } from "./graph/model.js";

const MOST_BOXES = 300;
const SVG = "http://www.w3.org/2000/svg";
const LETTER = 6.6;
const MARGIN = 16; // above the graph: the title of an open module stands there

function made(name, attributes = {}, text = "") {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text) element.textContent = text;
  return element;
}

function size(box) {
  const wide = Math.max(box.title.length * 1.12, box.detail.length) * LETTER + 20;
  return { width: Math.max(70, Math.min(wide, 320)), height: box.detail ? 40 : 28 };
}

class Picture {
  constructor(element) {
    this.element = element;
    this.network = new Network(JSON.parse(element.dataset.graph));
    this.open = new Set();
    this.asked = 0;
    this.worker = new Worker(element.dataset.worker);
    this.worker.onmessage = ({ data }) => this.draw(data);
    this.worker.onerror = () => this.say("The graph could not be drawn. The table below shows the layers.");
    this.build();
    this.ask();
  }

  build() {
    this.tools = document.createElement("div");
    this.tools.className = "graph-tools";
    this.tools.setAttribute("role", "group");
    this.tools.setAttribute("aria-label", "Graph");
    const buttons = [
      ["Zoom in", () => this.zoom(1 / 1.3)],
      ["Zoom out", () => this.zoom(1.3)],
      ["Whole graph", () => this.showAll()],
      ["Open modules", () => this.change(this.network.openable(MOST_BOXES))],
      ["Close all", () => this.change(new Set())],
    ];
    for (const [text, action] of buttons) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "small";
      button.textContent = text;
      button.addEventListener("click", action);
      this.tools.append(button);
    }
    this.words = document.createElement("span");
    this.words.className = "small soft";
    this.words.setAttribute("role", "status");
    this.tools.append(this.words);
    this.view = document.createElement("div");
    this.view.className = "graph-view";
    this.svg = made("svg", { role: "group", tabindex: "0", "aria-label": "Graph of the network. Plus and minus zoom, arrows move, 0 shows all." });
    this.view.append(this.svg);
    this.element.replaceChildren(this.tools, this.view);
    this.svg.addEventListener("keydown", (event) => this.key(event));
    this.svg.addEventListener("click", (event) => this.click(event.target.closest("[data-scope]")));
    this.svg.addEventListener("pointerdown", (event) => this.grab(event));
    this.svg.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
  }

  ask() {
    const { boxes, edges } = this.network.view(this.open);
    if (boxes.length > 2 * MOST_BOXES) {
      this.say(`${boxes.length} boxes are too many for a picture. Close some modules.`);
      return;
    }
    this.boxes = new Map(boxes.map((box) => [box.name, box]));
    this.asked += 1;
    const nodes = boxes.map((box) => ({ name: box.name, inside: box.inside, ...size(box) }));
    this.worker.postMessage({ id: this.asked, nodes, edges });
  }

  change(open, focus = "") {
    this.open = open;
    this.focus = focus;
    this.ask();
  }

  draw(result) {
    if (result.id !== this.asked) return;
    if (result.error) {
      this.say("The graph could not be drawn. The table below shows the layers.");
      return;
    }
    this.whole = { x: 0, y: 0, width: Math.max(result.width, 60), height: Math.max(result.height, 60) };
    const places = [...result.nodes].sort((a, b) => b.width * b.height - a.width * a.height);
    const opened = places.filter((place) => this.boxes.get(place.name)?.kind === "opened");
    const others = places.filter((place) => this.boxes.get(place.name)?.kind !== "opened");
    others.sort((a, b) => a.y - b.y);
    this.svg.replaceChildren(
      ...opened.map((place) => this.group(place)),
      ...result.edges.map((points) => this.arrow(points)),
      ...others.map((place) => this.group(place)),
    );
    this.fit();
    const modules = [...this.boxes.values()].filter((box) => box.kind === "module").length;
    this.say(`${this.boxes.size} boxes${modules ? `; ${modules} can be opened` : ""}.`);
    if (this.focus) this.svg.querySelector(`[data-scope="${CSS.escape(this.focus)}"]`)?.focus();
    this.focus = "";
    this.element.dataset.drawn = String(this.boxes.size);
  }

  group(place) {
    const box = this.boxes.get(place.name);
    const group = made("g", { class: box.kind });
    const left = place.x - place.width / 2;
    const top = place.y - place.height / 2;
    group.append(made("rect", { x: left, y: top, width: place.width, height: place.height }));
    if (box.kind === "operation") {
      group.append(made("text", { x: place.x, y: place.y - 3, "text-anchor": "middle" }, box.title));
      group.append(made("text", { x: place.x, y: place.y + 12, "text-anchor": "middle", class: "detail" }, box.detail));
    } else {
      const isOpen = box.kind === "opened";
      for (const [name, value] of Object.entries({
        role: "button",
        tabindex: "0",
        "aria-expanded": String(isOpen),
        "data-scope": box.name,
      })) group.setAttribute(name, value);
      const y = isOpen ? top - 5 : place.y - 3; // inside, the first box would cover it
      group.append(made("text", { x: isOpen ? left + 8 : place.x, y, "text-anchor": isOpen ? "start" : "middle" }, `${isOpen ? "−" : "+"} ${box.title}`));
      if (!isOpen) group.append(made("text", { x: place.x, y: place.y + 12, "text-anchor": "middle", class: "detail" }, ` ${box.detail}`));
    }
    // A module's name for those who do not see is what stands in it; a title would take its place.
    if (box.kind === "operation") group.append(made("title", {}, `${box.name}: ${box.title} ${box.detail}`));
    return group;
  }

  arrow(points) {
    const group = made("g");
    const line = points.map((point, number) => `${number ? "L" : "M"}${point.x.toFixed(1)} ${point.y.toFixed(1)}`).join("");
    const end = points.at(-1);
    const before = points.at(-2) ?? end;
    const turn = (Math.atan2(end.y - before.y, end.x - before.x) * 180) / Math.PI;
    group.append(made("path", { d: line }));
    group.append(made("path", { class: "tip", d: "M0 0L-7 -3.5L-7 3.5Z", transform: `translate(${end.x} ${end.y}) rotate(${turn})` }));
    return group;
  }

  click(group) {
    if (!group || this.moved) return;
    const open = new Set(this.open);
    const scope = group.dataset.scope;
    if (!open.delete(scope)) open.add(scope);
    this.change(open, scope);
  }

  key(event) {
    const steps = { ArrowLeft: [-0.15, 0], ArrowRight: [0.15, 0], ArrowUp: [0, -0.15], ArrowDown: [0, 0.15] };
    if (event.key in steps) this.move(...steps[event.key]);
    else if (event.key === "+" || event.key === "=") this.zoom(1 / 1.3);
    else if (event.key === "-") this.zoom(1.3);
    else if (event.key === "0") this.showAll();
    else if ((event.key === "Enter" || event.key === " ") && event.target.dataset.scope) this.click(event.target);
    else return;
    event.preventDefault();
  }

  grab(event) {
    if (event.button !== 0) return;
    this.moved = false;
    const start = { x: event.clientX, y: event.clientY, window: { ...this.window } };
    const scale = this.window.width / this.svg.clientWidth;
    const drag = (now) => {
      const [dx, dy] = [now.clientX - start.x, now.clientY - start.y];
      if (Math.abs(dx) + Math.abs(dy) > 4) this.moved = true;
      if (this.moved) this.show({ ...start.window, x: start.window.x - dx * scale, y: start.window.y - dy * scale });
    };
    const end = () => {
      window.removeEventListener("pointermove", drag);
      window.removeEventListener("pointerup", end);
    };
    window.addEventListener("pointermove", drag);
    window.addEventListener("pointerup", end);
  }

  wheel(event) {
    if (!event.ctrlKey && !event.metaKey) return; // the page scrolls as everywhere else
    event.preventDefault();
    this.zoom(event.deltaY > 0 ? 1.15 : 1 / 1.15);
  }

  fit() {
    // A tall graph starts at its top in a size that can be read; the rest is a move away.
    const aspect = this.svg.clientHeight / Math.max(1, this.svg.clientWidth);
    const { width, height } = this.whole;
    const wide = Math.max(width, Math.min(height / aspect, 900));
    this.show({ x: (width - wide) / 2, y: -MARGIN, width: wide, height: wide * aspect });
  }

  showAll() {
    const aspect = this.svg.clientHeight / Math.max(1, this.svg.clientWidth);
    const { width, height } = this.whole;
    const wide = Math.max(width, (height + 2 * MARGIN) / aspect);
    this.show({ x: (width - wide) / 2, y: (height - wide * aspect) / 2, width: wide, height: wide * aspect });
  }

  zoom(factor) {
    const { x, y, width, height } = this.window;
    if (width * factor < 80 || width * factor > 40000) return;
    this.show({ x: x + (width - width * factor) / 2, y: y + (height - height * factor) / 2, width: width * factor, height: height * factor });
  }

  move(right, down) {
    this.show({ ...this.window, x: this.window.x + right * this.window.width, y: this.window.y + down * this.window.height });
  }

  show(place) {
    this.window = place;
    this.svg.setAttribute("viewBox", `${place.x} ${place.y} ${place.width} ${place.height}`);
  }

  say(text) {
    this.words.textContent = text;
  }
}

export function mount(element) {
  const picture = new Picture(element);
  return () => picture.worker.terminate();
}
