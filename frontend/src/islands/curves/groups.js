// Which curves stand in one chart: a value in training and the same value in validation belong together.
const PREFIX = /^(validation|val|test|train)[_/]/;
// What the tasks say of their metrics; the page gives it: titles, which are shares, those that judge a training, which
// stand in the chart of another one, and which are not shown at first.
const known = { titles: {}, shares: {}, first: [], charts: {}, folded: [] };
const TITLES = { cost: "Loss", loss: "Loss", accuracy: "Accuracy", error: "Error", learning_rate: "Learning rate", f1: "F1", iou: "IoU", map: "mAP", auc: "AUC" };
const UNITS = { cost: "Mean of the samples", loss: "Mean of the samples", accuracy: "Percent of samples", error: "Percent of samples", learning_rate: "Factor of the update", backbone_rate: "Share of the rates that were asked for" };
const ORDER = ["accuracy", "cost", "loss", "error"];
const SHARES = /(^|[_/ ])(accuracy|precision|recall|f1|iou|dice|auc|map)$|^error$/; // a mean absolute error is no share
const NEVER_USUAL = ["learning_rate", "backbone_rate", "regularization", "weight_decay", "gradient_norm"];

export function learnMetrics(given) {
  Object.assign(known, given);
}

export function baseOf(tag) {
  return tag.replace(PREFIX, "");
}

export function partOf(tag) {
  const prefix = PREFIX.exec(tag)?.[1];
  if (prefix === "test") return "test";
  return prefix && prefix !== "train" ? "validation" : "training";
}

export function titleOf(key) {
  const words = key.replaceAll("_", " ");
  return TITLES[key] ?? known.titles[key] ?? words[0].toUpperCase() + words.slice(1);
}

const titleKey = (key) => titleOf(key).toLowerCase().replaceAll(" ", "_");

// What stands at the y axis.
export function unitOf(key, isPercent) {
  return UNITS[key] && (isPercent || key !== "error") ? UNITS[key] : isPercent ? "Percent" : "Value";
}

// Whether values from 0 to 1 of a metric are read as percent; an error of a regression may be above 1.
export function isShare(key, curves) {
  return (known.shares[key] ?? SHARES.test(key)) && curves.every((curve) => curve.values.every((value) => !(value > 1.000001 || value < 0)));
}

// The metrics of a chart, that which it is named after first.
export function basesOf(tags, key) {
  return [...new Set(tags.map(baseOf))].sort((a, b) => Number(b === key) - Number(a === key));
}

// Groups in the order in which they are shown; `isUsual`: shown where nobody chose otherwise. `isApart`: each curve by
// itself, the validation before the training.
export function groupsOf(tags, { isApart = false } = {}) {
  if (isApart) return apart(tags);
  const members = new Map();
  for (const tag of [...tags].sort((a, b) => Number(partOf(a) !== "training") - Number(partOf(b) !== "training") || (a < b ? -1 : 1))) {
    const key = known.charts[baseOf(tag)] ?? baseOf(tag);
    members.set(key, [...(members.get(key) ?? []), tag]);
  }
  const order = [...known.first, ...ORDER];
  const place = (key) => (order.includes(key) ? order.indexOf(key) : order.length);
  return [...members]
    .map(([key, own]) => ({ key, base: key, title: basesOf(own, key).map(titleOf).join(", "), tags: own, isUsual: isUsual(key, own, members) }))
    .sort((a, b) => place(a.key) - place(b.key) || Number(b.isUsual) - Number(a.isUsual) || (a.key < b.key ? -1 : 1));
}

function apart(tags) {
  return groupsOf(tags).flatMap((group) => {
    const tested = group.tags.filter((tag) => partOf(tag) !== "training");
    const ordered = [...tested, ...group.tags.filter((tag) => partOf(tag) === "training")];
    return ordered.map((tag) => {
      const part = partOf(tag);
      const own = titleOf(baseOf(tag));
      const title = group.tags.length > 1 || part !== "training" ? `${own}, ${part}` : own;
      return { key: `apart:${tag}`, base: baseOf(tag), title, tags: [tag], isUsual: group.isUsual && (tested.length === 0 || part !== "training") };
    });
  });
}

function isUsual(key, tags, members) {
  if (["cost", "loss", "accuracy"].includes(key)) return true;
  if (key !== titleKey(key) && members.has(titleKey(key))) return false; // a summary of the network says the same
  if (NEVER_USUAL.includes(key) || known.folded.includes(key)) return false;
  if (key === "error" && members.has("accuracy")) return false; // the same, upside down
  return tags.some((tag) => partOf(tag) === "validation");
}
