// The list of objects and the fields of the selected one, beside the image.
import { el } from "../curves/dom.js";
import { clipped } from "./geometry.js";

const SVG = "http://www.w3.org/2000/svg";
const COLOURS = 8;
const short = (value) => String(Number(value.toFixed(2)));

function mark(number) {
  const picture = document.createElementNS(SVG, "svg");
  picture.setAttribute("viewBox", "0 0 10 10");
  picture.setAttribute("class", `swatch-mark colour-${number >= 0 ? number % COLOURS : -1}`);
  picture.setAttribute("aria-hidden", "true");
  const rect = document.createElementNS(SVG, "rect");
  for (const [name, value] of Object.entries({ x: 1, y: 1, width: 8, height: 8, rx: 2 })) rect.setAttribute(name, value);
  picture.append(rect);
  return picture;
}

export function panelOf({ place, model, size, setClass, selected }) {
  const list = place.querySelector("#boxes-list");
  const count = place.querySelector("#boxes-count");
  const classField = place.querySelector("#box-class");
  const notes = place.querySelector("#box-notes");
  const sides = ["left", "top", "width", "height"].map((name) => place.querySelector(`#box-${name}`));
  const name = (number) => model.names[number] ?? "ignored region";
  const items = new Map(); // id → { each, item }
  let waiting = 0;
  let forNew = 0; // class of the next new box

  const valuesOf = ({ box }) => [box[0], box[1], box[2] - box[0], box[3] - box[1]];

  function itemOf(each) {
    const [left, top, right, bottom] = each.box;
    const about = [`${short(right - left)} × ${short(bottom - top)}`, ...each.notes.filter((note) => note === "crowd" || note === "difficult")].join(", ");
    return el("li", { role: "option", id: `object-${each.id}`, "data-id": each.id, "aria-selected": "false" }, mark(each.class), el("span", { class: "cut" }, name(each.class)), el("span", { class: "faint" }, about));
  }

  function showList() {
    const left = new Set(items.keys());
    let before = null;
    for (const each of model.boxes) {
      left.delete(each.id);
      const known = items.get(each.id);
      if (known?.each !== each) {
        const item = itemOf(each);
        if (known) known.item.replaceWith(item);
        items.set(each.id, { each, item });
      }
      const { item } = items.get(each.id);
      const wanted = before ? before.nextSibling : list.firstChild;
      if (wanted !== item) list.insertBefore(item, wanted);
      before = item;
    }
    for (const id of left) {
      items.get(id).item.remove();
      items.delete(id);
    }
    count.textContent = String(model.boxes.length);
  }

  // Only the list scrolls, and once a frame: to measure costs a layout.
  function follow(item) {
    const [above, below] = [item.offsetTop, item.offsetTop + item.offsetHeight];
    if (above < list.scrollTop) list.scrollTop = above;
    else if (below > list.scrollTop + list.clientHeight) list.scrollTop = below - list.clientHeight;
  }

  function showSelected() {
    const each = model.selected;
    for (const old of list.querySelectorAll('[aria-selected="true"]')) old.setAttribute("aria-selected", "false");
    const item = each && items.get(each.id)?.item;
    if (item) {
      item.setAttribute("aria-selected", "true");
      list.setAttribute("aria-activedescendant", item.id);
      cancelAnimationFrame(waiting);
      waiting = requestAnimationFrame(() => follow(item));
    } else list.removeAttribute("aria-activedescendant");
    showFields();
  }

  function showFields() {
    if (!classField) return;
    const each = model.selected;
    const number = each ? each.class : forNew;
    classField.value = String(number);
    for (const button of place.querySelectorAll("[data-class]")) button.setAttribute("aria-pressed", String(Number(button.dataset.class) === number));
    const values = each && valuesOf(each);
    sides.forEach((field, at) => {
      field.disabled = !each;
      if (field !== document.activeElement) field.value = each ? short(values[at]) : "";
      field.setCustomValidity("");
    });
    const lost = each && each.notes.includes("mask") && each.first !== each.box;
    notes.textContent = !each ? "" : lost ? "The mask of this object does not fit its new box and is dropped." : each.notes.length ? `Kept: ${each.notes.join(", ").replace("polygons", "outline")}.` : "";
    notes.hidden = !notes.textContent;
  }

  // The other fields are rounded, so they keep what the box has.
  function typed({ target }) {
    const each = model.selected;
    if (!each) return;
    const values = valuesOf(each);
    values[sides.indexOf(target)] = target.value.trim() === "" ? Number.NaN : Number(target.value);
    const [left, top, width, height] = values;
    const box = [left, top, left + width, top + height];
    const isBox = box.every(Number.isFinite) && width > 0 && height > 0;
    const [x, y, right, bottom] = isBox ? clipped(box, size) : box;
    const isInside = isBox && right > x && bottom > y;
    target.setCustomValidity(isInside ? "" : isBox ? "The box lies outside of the image." : "A box has an area: width and height are greater than 0.");
    if (isInside) model.change(each.id, { box: [x, y, right, bottom] }, "typed");
    else target.reportValidity();
  }

  sides.forEach((field) => field?.addEventListener("change", typed));
  classField?.addEventListener("change", () => setClass(Number(classField.value)));
  place.querySelector("#boxes-digits")?.addEventListener("click", ({ target }) => {
    const button = target.closest("[data-class]");
    if (button) setClass(Number(button.dataset.class));
  });
  list.addEventListener("click", ({ target }) => {
    const item = target.closest("[data-id]");
    if (item) selected(Number(item.dataset.id));
  });
  list.addEventListener("keydown", (event) => {
    const at = model.boxes.indexOf(model.selected);
    const last = model.boxes.length - 1;
    const to = { ArrowDown: at < 0 ? 0 : Math.min(at + 1, last), ArrowUp: at < 0 ? last : Math.max(at - 1, 0), Home: 0, End: last }[event.key];
    if (to === undefined || last < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    selected(model.boxes[to].id);
  });

  return {
    show(change) {
      if (change === "boxes" || change === "loaded") showList();
      if (change === "preview") showFields();
      else showSelected();
    },
    get forNew() {
      return forNew;
    },
    set forNew(number) {
      forNew = number;
      showFields();
    },
  };
}
