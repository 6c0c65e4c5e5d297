// Moves the sample predictions through the epochs by the slider. It follows the newest epoch until a person chooses
// another one; a morph, which brings the newest one, does not take that choice away.
function nearest(epochs, wanted) {
  const distances = epochs.map((epoch) => Math.abs(Number(epoch) - wanted));
  return distances.indexOf(Math.min(...distances));
}

function rectangle([x, y, width, height, stroke]) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  for (const [name, value] of Object.entries({ x, y, width, height, stroke })) made.setAttribute(name, value);
  return made;
}

export function mount(section) {
  let chosen = null; // epoch of the record, since old records are thinned out; null for the newest

  const slider = () => section.querySelector("#sample-epoch");
  const show = () => {
    const input = slider();
    if (!input || !section.dataset.records) return;
    const { epochs, samples } = JSON.parse(section.dataset.records);
    const last = epochs.length - 1;
    const index = chosen === null ? last : nearest(epochs, chosen);
    input.max = String(last);
    input.disabled = last < 1;
    input.value = String(index);
    input.setAttribute("aria-valuetext", `Epoch ${epochs[index]}`);
    section.querySelector(".preds-epoch").textContent = epochs[index];
    samples.forEach((sample, number) => {
      const tile = section.querySelector(`#pred-${number}`);
      if (!tile) return;
      if (sample.right[index] !== null) {
        tile.className = sample.right[index] ? "right" : "wrong";
        tile.querySelector(".pred-word").textContent = sample.right[index] ? "correct:" : "wrong:";
      }
      tile.querySelector(".pred-name").textContent = sample.predicted[index];
      tile.querySelector(".pred-score").textContent = sample.scores[index];
      if (sample.masks) tile.querySelector(".mask.predicted").src = sample.masks[index];
      if (sample.boxes) tile.querySelector(".predicted").replaceChildren(...sample.boxes[index].map(rectangle));
    });
  };
  const choose = (event) => {
    if (event.target !== slider()) return;
    const { epochs } = JSON.parse(section.dataset.records);
    const index = Number(event.target.value);
    chosen = index < epochs.length - 1 ? Number(epochs[index]) : null;
    show();
  };

  section.addEventListener("input", choose);
  document.addEventListener("htmx:after:swap", show);
  show();
  return () => {
    section.removeEventListener("input", choose);
    document.removeEventListener("htmx:after:swap", show);
  };
}
