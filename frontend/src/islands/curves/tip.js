// The values at the cursor: one line for each curve, then the learning rate and the events that are near.
import { el, numberText, swatch } from "./dom.js";

const GAP_PX = 12;

export class Tip {
  constructor(place) {
    this.element = el("div", { class: "curve-tip", hidden: true, "aria-hidden": "true" }); // the keys in the head say the same
    place.append(this.element);
  }

  // `rows`: [line, text]; `rate`: learning rate at that place, or undefined.
  show(plot, title, rows, rate, events) {
    const lines = rows.flatMap(([line, name, text]) => [swatch(line.token, line.dash), el("span", { class: "name" }, name), el("b", {}, text)]);
    const last = rate === undefined ? [] : [el("span"), el("span", { class: "name" }, "Learning rate"), el("b", {}, numberText(rate))];
    const notes = events.map((text) => el("p", { class: "event" }, text));
    this.element.replaceChildren(el("p", { class: "title" }, title), el("div", { class: "values" }, ...lines, ...last), ...notes);
    this.element.hidden = false;
    this.#place(plot);
  }

  hide() {
    this.element.hidden = true;
  }

  // Right of the cursor where there is room, else left of it; within the plot.
  #place(plot) {
    const { offsetLeft, offsetTop, clientWidth, clientHeight } = plot.over;
    const { offsetWidth: width, offsetHeight: height } = this.element;
    const { left, top } = plot.cursor;
    const x = left + GAP_PX + width <= clientWidth ? left + GAP_PX : Math.max(-offsetLeft, left - GAP_PX - width);
    const y = Math.min(Math.max(0, top - height / 2), Math.max(0, clientHeight - height));
    this.element.style.left = `${offsetLeft + x}px`;
    this.element.style.top = `${offsetTop + y}px`;
  }
}
