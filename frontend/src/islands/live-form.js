// A form that is sent for a check while a person types, and is morphed into the answer.
//
// An answer to what was typed before would take newer letters away, so it is given up with the next letter. What a
// person opened stays open: the server does not know of it.
export function mount(form) {
  let open = [];
  const giveUp = () => form.dispatchEvent(new CustomEvent("htmx:abort"));
  const remember = () => {
    open = [...form.querySelectorAll("details[id]")].map((each) => [each.id, each.open]);
  };
  const restore = () => {
    for (const [id, isOpen] of open) {
      const found = document.getElementById(id);
      if (found) found.open = isOpen;
    }
    open = [];
  };
  const before = (event) => {
    if (event.target === form) remember();
  };
  form.addEventListener("input", giveUp, true);
  form.addEventListener("htmx:before:swap", before);
  form.addEventListener("htmx:after:swap", restore);
  return () => {
    form.removeEventListener("input", giveUp, true);
    form.removeEventListener("htmx:before:swap", before);
    form.removeEventListener("htmx:after:swap", restore);
  };
}
