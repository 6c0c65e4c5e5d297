// The editor of the boxes of one image. Without it, the boxes are a table with a form.
import { areLettersOff } from "../keys.js";
import { pressedLink } from "../links.js";
import { el } from "./curves/dom.js";
import { contains, CORNERS, moved, resized } from "./boxes/geometry.js";
import { modelOf } from "./boxes/model.js";
import { panelOf } from "./boxes/panel.js";
import { proposalsOf } from "./boxes/proposals.js";
import { saverOf } from "./boxes/saving.js";
import { stageOf } from "./boxes/stage.js";

const STATES = { saved: "Saved", waiting: "Not saved yet", saving: "Saving …", failed: "Not saved: trying again", refused: "Not saved" };
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const FAR_PX = 10;
const ZOOM = 1.4;

export function mount(place) {
  const state = JSON.parse(place.dataset.state);
  const svg = place.querySelector("#boxes-svg");
  if (!svg || !state.size) return undefined;
  const mayWrite = "mayWrite" in place.dataset;
  const field = (name) => place.querySelector(`#${name}`);
  const size = state.size;
  const model = modelOf(state.objects, state.classes);

  // ---- what is said

  function say(text) {
    field("boxes-said").textContent = text;
  }

  function sayBox(each, at, total) {
    const [left, top, right, bottom] = each.box.map((side) => Number(side.toFixed(1)));
    const score = each.score === undefined ? "" : `, proposed with ${each.score.toFixed(2)}`;
    say(`${state.classes[each.class] ?? "ignored region"}${score}, ${at + 1} of ${total}: ${right - left} by ${bottom - top} px, left ${left}, top ${top}`);
  }

  function showState(name, message) {
    const chip = field("boxes-state");
    chip.hidden = !mayWrite;
    chip.textContent = STATES[name];
    chip.className = `chip ${{ saved: "ok", failed: "bad", refused: "bad" }[name] ?? "line"}`;
    chip.dataset.state = name;
    const note = field("boxes-conflict");
    if (name === "saved" || message) {
      note.hidden = !message;
      note.replaceChildren(...(message ? [el("p", {}, message)] : []));
    }
  }

  // ---- parts

  const act = {
    zoomed: (scale) => (field("boxes-zoom").textContent = `${Math.round(100 * scale)} %`),
    drawing(isOn) {
      field("tool-new")?.setAttribute("aria-pressed", String(isOn));
    },
    drawn(box) {
      model.add(box, panel.forNew);
    },
    pressed(point) {
      model.select(null);
      proposals.choose(proposals.shown().find((each) => contains(each.box, point)) ?? null);
    },
    classForNew: () => panel.forNew,
  };
  const proposals = proposalsOf({ place, api: place.dataset.api, model, changed: () => stage.showProposals() });
  const stage = stageOf({ svg, size, names: state.classes, model, proposals, mayWrite, act });
  const panel = panelOf({
    place,
    model,
    size,
    setClass,
    selected(id) {
      model.select(id);
      if (model.selected) stage.reveal(model.selected.box);
    },
  });
  const saver = saverOf({
    api: place.dataset.api,
    key: place.dataset.key,
    version: state.version,
    plain: model.plain,
    show: showState,
    saved: showPending,
    outdated: showConflict,
  });

  let wasChanged = Boolean(state.changes);
  let canUndoSaved = state.can_undo; // what was saved before this page; its own changes are undone here

  function showPending({ changes }) {
    const pending = field("boxes-pending");
    const isChanged = Boolean(changes);
    if (pending && isChanged !== wasChanged) {
      pending.textContent = String(Number(pending.textContent) + (isChanged ? 1 : -1));
      pending.hidden = pending.textContent === "0";
    }
    wasChanged = isChanged;
    field("boxes-applied")?.remove();
    field("boxes-who")?.remove();
  }

  // Somebody saved newer boxes: they are shown, or those of this page are put on top. Undo brings back the others.
  function showConflict(current, isLeft = false) {
    const note = field("boxes-conflict");
    const who = current.user || "Somebody";
    const choose = (isMine) => {
      note.hidden = true;
      note.replaceChildren();
      if (!isMine) model.replace(current.objects);
      saver.goOn(current.version, isMine);
      svg.focus();
    };
    note.replaceChildren(
      el("p", {}, el("strong", {}, `${who} saved newer boxes of this image. `), `Yours ${isLeft ? "from before" : ""} are on this page and not saved; nothing is lost.`),
      el("div", { class: "row" }, el("button", { type: "button", class: "small", id: "conflict-theirs", onclick: () => choose(false) }, "Show the newer ones"), el("button", { type: "button", class: "small", id: "conflict-mine", onclick: () => choose(true) }, "Save mine on top")),
    );
    note.hidden = false;
    field("boxes-state").textContent = STATES.refused;
  }

  model.listen((change) => {
    stage.showBoxes();
    panel.show(change);
    if (change === "selection") stage.setCorner(null);
    if (change === "boxes" || change === "loaded") proposals.show();
    if (change === "boxes") {
      canUndoSaved = false;
      saver.changed();
    }
    showTools();
  });

  function showTools() {
    const tools = { "tool-undo": model.canUndo || canUndoSaved, "tool-redo": model.canRedo, "tool-delete": Boolean(model.selected) };
    for (const [name, isOn] of Object.entries(tools)) if (field(name)) field(name).disabled = !isOn;
  }

  // ---- what people do

  function setClass(number) {
    if (!mayWrite) return;
    panel.forNew = number;
    if (model.selected && model.selected.class !== number) model.change(model.selected.id, { class: number });
    say(`Class ${state.classes[number] ?? "ignored region"}`);
  }

  function remove() {
    if (proposals.chosen) return proposals.rejectChosen();
    if (!model.selected) return undefined;
    model.remove(model.selected.id);
    return say("Deleted");
  }

  async function undo() {
    if (!model.canUndo && canUndoSaved) {
      canUndoSaved = false; // until it is answered
      showTools();
      const before = await saver.undo();
      if (!before) return;
      canUndoSaved = before.can_undo;
      model.load(before.objects);
      say("Undone");
    } else if (model.undo()) say("Undone");
  }

  function redo() {
    if (model.redo()) say("Done again");
  }

  function nudge(event) {
    const each = model.selected;
    if (!each || !mayWrite) return false;
    const [dx, dy] = ARROWS[event.key].map((value) => value * (event.shiftKey ? FAR_PX : 1));
    const sides = stage.corner && CORNERS[stage.corner];
    const box = sides ? resized(each.box, sides, [each.box[sides[0]] + dx, each.box[sides[1]] + dy], size) : moved(each.box, dx, dy, size);
    if (box.some((side, at) => side !== each.box[at])) model.change(each.id, { box }, sides ? "resize" : "nudge");
    return true;
  }

  function nextCorner() {
    if (!model.selected) return;
    const names = [null, ...Object.keys(CORNERS)];
    stage.setCorner(names[(names.indexOf(stage.corner) + 1) % names.length]);
    say(stage.corner ? `The arrows move the ${stage.corner} corner` : "The arrows move the box");
  }

  // Goes to the next box or proposal; at the end, Tab leaves the image as it leaves everything.
  function walk(by) {
    const all = [...model.boxes, ...proposals.shown()];
    const now = proposals.chosen ?? model.selected;
    const at = now ? all.indexOf(now) + by : by > 0 ? 0 : all.length - 1;
    const target = all[at];
    if (!target) {
      model.select(null);
      proposals.choose(null);
      return false;
    }
    const isProposal = at >= model.boxes.length;
    model.select(isProposal ? null : target.id);
    proposals.choose(isProposal ? target : null);
    stage.reveal(target.box);
    sayBox(target, at, all.length);
    return true;
  }

  function startDrawing() {
    stage.setDrawing(!stage.isDrawing);
    svg.focus({ preventScroll: true });
    say(stage.isDrawing ? "Draw a box, or press Enter to place one in the middle" : "");
  }

  function entered() {
    if (proposals.chosen) {
      proposals.acceptChosen();
      return true;
    }
    if (!stage.isDrawing) return false;
    stage.setDrawing(false);
    const made = model.add(stage.usualBox(), panel.forNew);
    sayBox(made, model.boxes.length - 1, model.boxes.length);
    return true;
  }

  function escaped(isInStage) {
    if (stage.cancel()) return;
    if (stage.isDrawing) stage.setDrawing(false);
    else if (isInStage) field("boxes-list").focus();
    else {
      model.select(null);
      proposals.choose(null);
    }
  }

  async function leave(href) {
    await saver.flush();
    if (!saver.isDirty) location.assign(href);
  }

  function letter(key) {
    const chosen = /^[0-9]$/.test(key) ? (Number(key) + 9) % 10 : -1;
    const go = (rel) => place.querySelector(`a[rel=${rel}]`)?.click();
    if (key === "j") go("next");
    else if (key === "k") go("prev");
    else if (key === "f") stage.fit();
    else if (key === "+" || key === "=") stage.zoom(ZOOM);
    else if (key === "-") stage.zoom(1 / ZOOM);
    else if (!mayWrite) return false;
    else if (chosen >= 0) chosen < state.classes.length && setClass(chosen);
    else if (key === "l") field("box-class").focus();
    else if (key === "n") startDrawing();
    else if (key === "r") nextCorner();
    else if (key === "u") undo();
    else if (key === "y") redo();
    else if (key === "p") proposals.ask();
    else if (key === "a") proposals.acceptAbove();
    else return false;
    return true;
  }

  function command(event) {
    const key = event.key.toLowerCase();
    if (!mayWrite || (key !== "z" && key !== "y")) return false;
    if (key === "y" || event.shiftKey) redo();
    else undo();
    return true;
  }

  function key(event) {
    const isInStage = event.target === svg;
    const isFree = isInStage || event.target === document.body || event.target.id === "content" || event.target.id === "boxes-list";
    if (event.key === "Tab") return isInStage && walk(event.shiftKey ? -1 : 1);
    if (event.key === "Escape") return escaped(isInStage), true;
    if (event.key === "Enter") return isFree && entered();
    if (event.key === "Delete" || event.key === "Backspace") return isFree && mayWrite && (remove(), true);
    if (event.key in ARROWS) return isFree && event.target.id !== "boxes-list" && nudge(event);
    if (event.key === " ") return isInStage && (stage.setPanning(true), true);
    return !areLettersOff() && letter(event.key.toLowerCase());
  }

  function pressed(event) {
    if (event.defaultPrevented || event.altKey || event.isComposing || document.querySelector("dialog[open], [popover]:popover-open")) return;
    if (event.target.closest?.("input:not([type=range]), select, textarea")) {
      if (event.key === "Escape") svg.focus();
      return;
    }
    if (event.ctrlKey || event.metaKey ? command(event) : key(event)) event.preventDefault();
  }

  const released = (event) => event.key === " " && stage.setPanning(false);
  const clicked = (event) => {
    const link = pressedLink(event, "a[data-leave]");
    if (link) leave(link.href);
  };
  const warned = (event) => {
    if (!saver.isDirty) return;
    saver.flush();
    event.preventDefault();
  };
  const tools = { "tool-new": startDrawing, "tool-delete": remove, "tool-undo": undo, "tool-redo": redo, "tool-in": () => stage.zoom(ZOOM), "tool-out": () => stage.zoom(1 / ZOOM), "tool-fit": stage.fit };
  for (const [name, run] of Object.entries(tools)) field(name)?.addEventListener("click", run);
  document.addEventListener("keydown", pressed);
  document.addEventListener("keyup", released);
  place.addEventListener("click", clicked);
  window.addEventListener("beforeunload", warned);

  // ---- the page as it is with a script

  field("boxes-table").hidden = true;
  for (const name of ["boxes-tools", "boxes-panel", "boxes-proposals"]) if (field(name)) field(name).hidden = false;
  svg.setAttribute("role", "application");
  svg.setAttribute("aria-roledescription", "image with boxes");
  svg.setAttribute("aria-label", `Boxes of ${field("boxes-title").textContent}`);
  svg.setAttribute("aria-describedby", "boxes-said");
  svg.tabIndex = 0;
  stage.fit();
  stage.showBoxes();
  panel.show("boxes");
  showState("saved", "");
  showTools();
  const left = mayWrite ? saver.left() : null;
  if (left) {
    const known = left.objects.map((each) => ({ ...state.objects.find((other) => each.source !== null && other.source === each.source), ...each }));
    if (left.version !== state.version) saver.stop();
    model.replace(known);
    if (left.version !== state.version) showConflict(state, true);
  }
  if (document.activeElement === document.body) svg.focus({ preventScroll: true });

  return () => {
    document.removeEventListener("keydown", pressed);
    document.removeEventListener("keyup", released);
    window.removeEventListener("beforeunload", warned);
    saver.flush();
    saver.end();
    stage.end();
  };
}
