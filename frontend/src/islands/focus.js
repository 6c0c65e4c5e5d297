// A field that a person asked for: it is where they go on typing.
export function mount(field) {
  field.focus();
  field.select();
}
