// Dragging jobs of the queue to another place; the buttons beside the handles do the same by keyboard.
//
// The rows move while the pointer does. What is sent at the end is the job, and the one that it stands before.
export function mount(body) {
  const section = body.closest("section");
  let row = null;
  let start = null;

  const rows = () => [...body.querySelectorAll("tr[data-job]")];
  const end = () => {
    row?.classList.remove("dragged");
    row = null;
    delete section.dataset.dragging;
  };
  const down = (event) => {
    const handle = event.target.closest("[data-handle]");
    if (!handle || event.button !== 0) return;
    event.preventDefault();
    row = handle.closest("tr");
    start = row.nextElementSibling;
    row.classList.add("dragged");
    section.dataset.dragging = "true"; // so that news do not take the row away
    body.setPointerCapture(event.pointerId);
  };
  const move = (event) => {
    if (!row) return;
    const others = rows().filter((each) => each !== row);
    const next = others.find((each) => {
      const box = each.getBoundingClientRect();
      return event.clientY < box.top + box.height / 2;
    });
    if (next !== row.nextElementSibling) body.insertBefore(row, next ?? null);
  };
  const up = () => {
    if (!row) return;
    const isMoved = row.nextElementSibling !== start;
    const form = document.getElementById("queue-place");
    form.elements.job.value = row.dataset.job;
    form.elements.before.value = row.nextElementSibling?.dataset.job ?? body.dataset.next ?? "";
    end();
    if (isMoved) form.requestSubmit();
  };
  const cancel = () => {
    if (row) body.insertBefore(row, start);
    end();
  };
  body.addEventListener("pointerdown", down);
  body.addEventListener("pointermove", move);
  body.addEventListener("pointerup", up);
  body.addEventListener("pointercancel", cancel);
  return () => {
    end();
    body.removeEventListener("pointerdown", down);
    body.removeEventListener("pointermove", move);
    body.removeEventListener("pointerup", up);
    body.removeEventListener("pointercancel", cancel);
  };
}
