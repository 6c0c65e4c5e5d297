// A field that a person asked for: it is where they go on typing, and when it goes they are back at `data-back`.
export function mount(field) {
  const isTyped = field.value !== field.defaultValue; // before this script was here: the next letter must not replace it
  field.focus();
  if (!isTyped) field.select();
  return () => {
    if (document.activeElement === document.body) document.getElementById(field.dataset.back)?.focus();
  };
}
