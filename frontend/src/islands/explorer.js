// The explorer of a data set: strength of masks, boxes on and off, arrow keys, and how many samples are chosen.
const STRENGTH = "ziggurat.mask-strength";

function remembered() {
  try {
    return Number(localStorage.getItem(STRENGTH) ?? 55);
  } catch {
    return 55;
  }
}

function remember(value) {
  try {
    localStorage.setItem(STRENGTH, value);
  } catch {
    // Then it holds for this page alone.
  }
}

// A slider that acts on every mask of the page; without a script they have the usual strength.
function startMasks(place) {
  const slider = place.querySelector("#mask-strength");
  if (!slider) return;
  slider.parentElement.hidden = false;
  slider.value = remembered();
  const show = () => place.style.setProperty("--mask-strength", String(slider.value / 100));
  slider.addEventListener("input", show);
  slider.addEventListener("change", () => remember(slider.value));
  show();
}

function startMarks(place) {
  const box = place.querySelector("#show-marks");
  if (!box) return;
  box.parentElement.hidden = false;
  box.addEventListener("change", () => place.classList.toggle("hide-marks", !box.checked));
}

function startCount(place) {
  const said = place.querySelector("#chosen-count");
  if (!said) return;
  const count = () => {
    const all = place.querySelector("#everything")?.checked;
    const chosen = place.querySelectorAll('input[name="samples"]:checked').length;
    said.textContent = all ? "all" : chosen ? `${chosen} chosen` : "none is chosen";
  };
  place.addEventListener("change", count);
  count();
}

// Arrows go from picture to picture, x chooses; on the page of one sample, left and right go to its neighbours.
function pressed(place, event) {
  if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest("input, select, textarea, summary, [role=region]")) return;
  const steps = [...place.querySelectorAll("[data-step]")];
  if (!steps.length) {
    const rel = { ArrowLeft: "prev", ArrowRight: "next" }[event.key];
    const link = rel && place.querySelector(`a[rel=${rel}]`);
    if (link) link.click();
    return;
  }
  const at = steps.indexOf(event.target.closest("[data-step]"));
  if (at < 0) return;
  if (event.key === "x") {
    event.target.closest("li, tr").querySelector('input[name="samples"]')?.click();
    return;
  }
  const columns = steps.filter((step) => step.getBoundingClientRect().top === steps[0].getBoundingClientRect().top).length;
  const move = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[event.key];
  const target = move && steps[at + move];
  if (!target) return;
  event.preventDefault();
  target.focus();
}

export function mount(place) {
  startMasks(place);
  startMarks(place);
  startCount(place);
  const listener = (event) => pressed(place, event);
  document.addEventListener("keydown", listener);
  return () => document.removeEventListener("keydown", listener);
}
