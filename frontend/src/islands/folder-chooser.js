// Puts the path that is chosen in a list of folders into a field of the form.
export function mount(dialog) {
  const chosen = (event) => {
    const button = event.target.closest?.("[data-path]");
    if (!button) return;
    const field = document.getElementById(dialog.dataset.field);
    field.value = button.dataset.path;
    dialog.close();
    field.focus();
    field.dispatchEvent(new Event("input", { bubbles: true }));
  };
  dialog.addEventListener("click", chosen);
  return () => dialog.removeEventListener("click", chosen);
}
