// The boxes of one image, which of them is selected, and what Undo and Redo bring back. A list of boxes is never changed
// in place: each change makes a new list, in which untouched boxes are the same objects.
const ONE_STEP_MS = 1000; // keys that nudge a box within this time are one step of Undo

export function modelOf(objects, names) {
  let numbers = 0;
  let past = [];
  let future = [];
  let last = { what: "", time: 0 };
  const listeners = [];

  const known = (each) => ({ id: ++numbers, source: each.source ?? null, class: each.class, box: each.box, notes: ["crowd", "difficult", "polygons", "mask"].filter((name) => each[name]), first: each.box });
  let boxes = objects.map(known);
  let selected = null;

  const tell = (change) => listeners.forEach((listener) => listener(change));

  function put(next, what) {
    const now = Date.now();
    const isSame = what && what === last.what && now - last.time < ONE_STEP_MS;
    if (!isSame) past.push(boxes);
    future = [];
    last = { what, time: now };
    boxes = next;
    if (selected !== null && !boxes.some((each) => each.id === selected)) selected = null;
    tell("boxes");
  }

  function go(from, to) {
    if (!from.length) return false;
    to.push(boxes);
    boxes = from.pop();
    last = { what: "", time: 0 };
    if (!boxes.some((each) => each.id === selected)) selected = null;
    tell("boxes");
    return true;
  }

  return {
    names,
    get boxes() {
      return boxes;
    },
    get selected() {
      return boxes.find((each) => each.id === selected) ?? null;
    },
    get canUndo() {
      return past.length > 0;
    },
    get canRedo() {
      return future.length > 0;
    },
    listen: (listener) => listeners.push(listener),
    select(id) {
      if (selected === id) return;
      selected = id;
      tell("selection");
    },
    add(box, number) {
      const made = known({ box, class: number });
      selected = made.id;
      put([...boxes, made], "");
      return made;
    },
    addAll(found) {
      put([...boxes, ...found.map(known)], "");
    },
    remove(id) {
      const at = boxes.findIndex((each) => each.id === id);
      const next = boxes.filter((each) => each.id !== id);
      selected = null;
      put(next, "");
      return at;
    },
    // `step`: changes of the same step, one soon after the other, are undone at once.
    change(id, values, step = "") {
      put(boxes.map((each) => (each.id === id ? { ...each, ...values } : each)), step && `${step} ${id}`);
    },
    // What a drag shows before it ends; Undo knows nothing of it.
    preview(id, box) {
      boxes = boxes.map((each) => (each.id === id ? { ...each, box } : each));
      tell("preview");
    },
    restore(list) {
      boxes = list;
      tell("preview");
    },
    // Ends a drag that began with a list.
    settle(list) {
      const next = boxes;
      boxes = list;
      put(next, "");
    },
    replace: (found) => put(found.map(known), ""),
    // Takes boxes that the server has already; Redo brings those of before back.
    load(found) {
      future.push(boxes);
      boxes = found.map(known);
      selected = null;
      tell("loaded");
    },
    undo: () => go(past, future),
    redo: () => go(future, past),
    plain: () => boxes.map(({ source, class: number, box }) => ({ source, class: number, box })),
  };
}
