// A slider beside the number field of the learning rate: a hundredth to a hundred times of what it is, by its logarithm.
import { el, numberText } from "./curves/dom.js";

const DECADES = 2;
const SETTLE_MS = 400;

export function mountLearningRate(form) {
  const field = form.querySelector("#rate-value");
  const place = form.querySelector("#rate-slider-place");
  let centre = Math.log10(Number(field.value) || 0.01);
  let timer = 0;
  const ends = [el("span"), el("span")];
  const slider = el("input", { type: "range", id: "rate-slider", min: -DECADES, max: DECADES, step: 0.02, value: 0, "aria-describedby": "rate-hint" });

  const tell = () => slider.setAttribute("aria-valuetext", field.value);
  const around = (rate) => {
    centre = Math.log10(rate > 0 ? rate : 0.01);
    slider.value = 0;
    ends[0].textContent = numberText(10 ** (centre - DECADES));
    ends[1].textContent = numberText(10 ** (centre + DECADES));
    tell();
  };
  slider.addEventListener("input", () => {
    field.value = String(Number((10 ** (centre + Number(slider.value))).toPrecision(3)));
    tell();
  });
  slider.addEventListener("change", () => {
    clearTimeout(timer);
    timer = setTimeout(() => form.requestSubmit(), SETTLE_MS);
  });
  field.addEventListener("input", () => {
    slider.value = Math.min(DECADES, Math.max(-DECADES, Math.log10(Number(field.value) || 10 ** centre) - centre));
    tell();
  });

  place.replaceChildren(el("label", { for: "rate-slider", class: "visually-hidden" }, "Learning rate, on a logarithmic scale"), slider, el("div", { class: "ends", "aria-hidden": "true" }, ...ends));
  around(Number(field.value));

  // What holds may change by the schedule: the field follows it while nobody is at it.
  let known = field.defaultValue; // what was typed before this script was here is somebody's
  const follow = () => {
    const rate = document.getElementById("job-rate-now")?.dataset.rate ?? "";
    const isAtIt = form.contains(document.activeElement) || field.value !== known;
    if (!rate || rate === known || isAtIt) return;
    field.value = known = rate;
    around(Number(rate));
  };
  const sent = () => (known = field.value);
  form.addEventListener("submit", sent);
  document.addEventListener("htmx:after:swap", follow);
  return () => {
    clearTimeout(timer);
    document.removeEventListener("htmx:after:swap", follow);
  };
}
