// Shows the threshold while its slider moves, and sets it back where there is a button for it; the results follow
// through the form itself.
export function mount(form) {
  const slider = form.querySelector('input[type="range"]');
  const shown = form.querySelector("output");
  const reset = form.querySelector("[data-reset]");
  const tell = () => {
    shown.textContent = Number(slider.value).toFixed(2);
    // The focus must not fall out of the page with a button that is disabled under it.
    if (reset) reset.disabled = Number(slider.value) === 0 && document.activeElement !== reset;
  };
  const back = () => {
    slider.value = 0;
    slider.focus();
    slider.dispatchEvent(new Event("input", { bubbles: true }));
  };
  slider.addEventListener("input", tell);
  reset?.addEventListener("click", back);
  tell(); // a browser may come back to the page with the slider where it was
  return () => {
    slider.removeEventListener("input", tell);
    reset?.removeEventListener("click", back);
  };
}
