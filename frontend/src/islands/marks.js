// Marks the fields of a form that its check found wrong, as the page itself does once it is sent.
export function mount(place) {
  const show = () => {
    const check = document.getElementById(place.dataset.check);
    const wrong = new Set([...(check?.querySelectorAll('.finding.error a[href^="#"]') ?? [])].map((link) => link.hash.slice(1)));
    for (const field of place.querySelectorAll("input[id], select[id], textarea[id]")) {
      if (wrong.has(field.id)) field.setAttribute("aria-invalid", "true");
      else field.removeAttribute("aria-invalid");
    }
  };
  place.addEventListener("htmx:after:swap", show);
  return () => place.removeEventListener("htmx:after:swap", show);
}
