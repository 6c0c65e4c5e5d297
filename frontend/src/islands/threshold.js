// Shows the threshold while its slider moves; the results follow through the form itself.
export function mount(form) {
  const slider = form.querySelector('input[type="range"]');
  const shown = form.querySelector("output");
  const tell = () => {
    shown.textContent = Number(slider.value).toFixed(2);
  };
  slider.addEventListener("input", tell);
  tell(); // a browser may come back to the page with the slider where it was
  return () => slider.removeEventListener("input", tell);
}
