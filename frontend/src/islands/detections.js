// Actual and predicted boxes of the samples of an evaluation: a slider leaves out what has less confidence, boxes take
// out what is actual, predicted, or named. A matching holds at every confidence, so nothing is asked of the server.
//
//   <div data-island="detections"> <div data-controls hidden> <input type="range" data-confidence>
//     <output data-confidence-text> <input type="checkbox" data-show="actual"> <p data-figures="[…]"> </div>
//     … <g class="actual" data-found="0.8"> … <g class="predicted correct" data-score="0.8"> … </div>
//
// Without the script, predictions with the confidence that was asked for, or more, are shown.
const percent = (share) => (share === null || share === undefined ? "–" : `${Math.round(100 * share)} %`);

export function mount(element) {
  const controls = element.querySelector("[data-controls]");
  const confidence = element.querySelector("[data-confidence]");
  const figures = element.querySelector("[data-figures]");
  const rows = figures ? JSON.parse(figures.dataset.figures) : [];
  controls.hidden = false;

  const show = () => {
    const least = Number(confidence.value);
    for (const each of element.querySelectorAll("[data-score]")) each.classList.toggle("off", Number(each.dataset.score) < least);
    for (const each of element.querySelectorAll("[data-found]")) each.classList.toggle("missed", Number(each.dataset.found) < least);
    for (const box of element.querySelectorAll("[data-show]")) element.classList.toggle(`without-${box.dataset.show}`, !box.checked);
    const text = percent(least);
    confidence.setAttribute("aria-valuetext", text);
    element.querySelector("[data-confidence-text]").textContent = text;
    const row = rows.find((each) => Math.abs(each.confidence - least) < 0.001);
    if (figures) figures.textContent = !row ? "" : `All samples: precision ${percent(row.precision)}, recall ${percent(row.recall)}, F1 ${percent(row.f1)}`;
  };

  element.addEventListener("input", show);
  show();
  return () => element.removeEventListener("input", show);
}
