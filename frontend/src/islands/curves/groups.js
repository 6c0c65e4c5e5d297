// Which curves stand in one chart: a value in training and the same value in validation belong together.
const PREFIX = /^(validation|val|test)[_/]/;
const TITLES = { cost: "Loss", loss: "Loss", accuracy: "Accuracy", error: "Error", learning_rate: "Learning rate" };
const ORDER = ["cost", "loss", "accuracy", "learning_rate", "error"];

export function baseOf(tag) {
  return tag.replace(PREFIX, "");
}

export function partOf(tag) {
  const prefix = PREFIX.exec(tag)?.[1];
  if (!prefix) return "training";
  return prefix === "test" ? "test" : "validation";
}

export function titleOf(key) {
  return TITLES[key] ?? key;
}

// Groups in the order in which they are shown; `isUsual`: shown where nobody chose otherwise. `isApart`: each curve by
// itself, the validation before the training.
export function groupsOf(tags, { isApart = false } = {}) {
  if (isApart) return apart(tags);
  const members = new Map();
  for (const tag of [...tags].sort()) {
    const key = baseOf(tag);
    members.set(key, [...(members.get(key) ?? []), tag]);
  }
  const place = (key) => (ORDER.includes(key) ? ORDER.indexOf(key) : ORDER.length);
  return [...members]
    .map(([key, own]) => ({ key, title: titleOf(key), tags: own, isUsual: isUsual(key, own, members) }))
    .sort((a, b) => place(a.key) - place(b.key) || Number(b.isUsual) - Number(a.isUsual) || (a.key < b.key ? -1 : 1));
}

function apart(tags) {
  return groupsOf(tags).flatMap((group) => {
    const tested = group.tags.filter((tag) => partOf(tag) !== "training");
    const ordered = [...tested, ...group.tags.filter((tag) => partOf(tag) === "training")];
    return ordered.map((tag) => ({ key: `apart:${tag}`, title: partOf(tag) === "training" ? group.title : `${group.title}, ${partOf(tag)}`, tags: [tag], isUsual: group.isUsual && (tested.length === 0 || partOf(tag) !== "training") }));
  });
}

function isUsual(key, tags, members) {
  if (["cost", "loss", "accuracy", "learning_rate"].includes(key)) return true;
  if (key === "error" && members.has("accuracy")) return false; // the same, upside down
  return tags.some((tag) => partOf(tag) === "validation");
}
