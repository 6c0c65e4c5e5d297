// Predicted boxes over an image: a slider leaves out those with less confidence, boxes take classes and names out.
//
//   <div data-island="predicted-boxes"> <div data-controls hidden> <input type="range" data-confidence>
//     <input type="checkbox" data-class="2"> <input type="checkbox" data-names> </div>
//     … <g data-score="0.8" data-class="2"> … <tr data-score="0.8" data-class="2"> … <p data-none hidden> </div>
//
// Several of them in a list are set together: what is done to one holds for all. Without the script those with a
// confidence of 30 % or more are shown.
export function mount(element) {
  const controls = element.querySelector("[data-controls]");
  const confidence = element.querySelector("[data-confidence]");
  const names = element.querySelector("[data-names]");
  const classes = [...element.querySelectorAll("input[data-class]")];
  const found = [...element.querySelectorAll("[data-score]")];
  const list = element.closest("ul");
  controls.hidden = false;

  const show = () => {
    const least = Number(confidence.value);
    const hidden = new Set(classes.filter((box) => !box.checked).map((box) => box.dataset.class));
    let shown = 0;
    for (const each of found) {
      const isOff = Number(each.dataset.score) < least || hidden.has(each.dataset.class);
      each.classList.toggle("off", isOff);
      shown += !isOff;
    }
    element.classList.toggle("without-names", !names.checked);
    element.querySelector("[data-none]").hidden = shown > 0;
    const text = `${Math.round(100 * least)} %`;
    confidence.setAttribute("aria-valuetext", text);
    element.querySelector("[data-confidence-text]").textContent = text;
  };

  const change = () => {
    show();
    const checked = Object.fromEntries(classes.map((box) => [box.dataset.class, box.checked]));
    list?.dispatchEvent(new CustomEvent("boxes-set", { detail: { confidence: confidence.value, names: names.checked, checked } }));
  };

  const follow = ({ detail }) => {
    confidence.value = detail.confidence;
    names.checked = detail.names;
    for (const box of classes) box.checked = detail.checked[box.dataset.class] ?? box.checked;
    show();
  };

  element.addEventListener("input", change);
  list?.addEventListener("boxes-set", follow);
  show();
  return () => {
    element.removeEventListener("input", change);
    list?.removeEventListener("boxes-set", follow);
  };
}
