// A field that a person asked for: it is where they go on typing, and when it goes they are back at `data-back`.
export function mount(field) {
  field.focus();
  field.select();
  return () => {
    if (document.activeElement === document.body) document.getElementById(field.dataset.back)?.focus();
  };
}
