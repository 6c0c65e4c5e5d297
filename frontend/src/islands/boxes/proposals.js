// Boxes that a model proposes: asked of the server, shown dashed with their scores, and accepted or rejected. One that
// stands where an object of its class is already is left out.
import { iou } from "./geometry.js";

const SAME = 0.5; // IoU from which on two boxes of a class are one object

export function proposalsOf({ place, api, model, changed }) {
  const field = (name) => place.querySelector(`#${name}`);
  const shownFrom = field("proposals-shown");
  const limit = field("proposals-limit");
  let all = [];
  let chosen = null;
  let isAsked = false;

  const isKnown = (each) => model.boxes.some((box) => box.class === each.class && iou(box.box, each.box) >= SAME);
  const open = () => all.filter((each) => !isKnown(each));
  const shown = () => open().filter((each) => each.score >= Number(shownFrom?.value ?? 0.3));
  const above = () => open().filter((each) => each.score >= Number(limit?.value ?? 0.8));

  function show() {
    if (!field("proposals-tools")) return;
    const left = shown();
    if (!left.includes(chosen)) chosen = null;
    field("proposals-tools").hidden = !open().length;
    for (const [input, name] of [[shownFrom, "proposals-shown-value"], [limit, "proposals-limit-value"]]) field(name).textContent = Number(input.value).toFixed(2);
    const certain = above().length;
    field("accept-above").textContent = `Accept ${certain} above ${Number(limit.value).toFixed(2)}`;
    field("accept-above").disabled = !certain;
    field("proposals-count").hidden = !isAsked;
    field("proposals-count").textContent = String(left.length);
    field("proposal-chosen").hidden = !chosen;
    if (chosen) field("proposal-name").textContent = `${model.names[chosen.class] ?? ""}, ${chosen.score.toFixed(2)}`;
    changed();
  }

  function say(text) {
    const said = field("proposals-said");
    if (said) said.textContent = text;
  }

  async function ask() {
    const button = field("propose");
    if (!button || button.disabled) return;
    button.disabled = true;
    say("The model looks at the image …");
    try {
      const answer = await fetch(`${api}/proposals?source=${encodeURIComponent(field("proposals-source").value)}`, { headers: { Accept: "application/json" } });
      const content = await answer.json();
      if (!answer.ok) throw new Error([content.rule, content.advice].filter(Boolean).join(" "));
      all = content.proposals;
      isAsked = true;
      const known = all.length - open().length;
      say(`${all.length} proposed${known ? `, ${known} of them are boxes of the image already` : ""}.`);
    } catch (error) {
      say(error instanceof TypeError ? "The studio is not reachable." : error.message);
    }
    button.disabled = false;
    show();
  }

  function accept(some) {
    if (!some.length) return;
    all = all.filter((each) => !some.includes(each));
    chosen = null;
    model.addAll(some.map(({ class: number, box }) => ({ class: number, box })));
    say(`${some.length} accepted.`);
    show();
  }

  function reject(some) {
    all = all.filter((each) => !some.includes(each));
    chosen = null;
    show();
  }

  shownFrom?.addEventListener("input", show);
  limit?.addEventListener("input", show);
  field("propose")?.addEventListener("click", ask);
  field("accept-above")?.addEventListener("click", () => accept(above()));
  field("reject-all")?.addEventListener("click", () => reject(all));
  field("proposal-accept")?.addEventListener("click", () => accept([chosen]));
  field("proposal-reject")?.addEventListener("click", () => reject([chosen]));

  return {
    ask,
    shown,
    show,
    acceptAbove: () => accept(above()),
    acceptChosen: () => accept([chosen]),
    rejectChosen: () => reject([chosen]),
    get chosen() {
      return chosen;
    },
    choose(each) {
      chosen = each;
      show();
    },
  };
}
