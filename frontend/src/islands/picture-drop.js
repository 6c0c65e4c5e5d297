// Takes an image that is dropped or pasted anywhere on the form, and asks at once; a file, a path and an address exclude each other.
export function mount(form) {
  const picker = form.querySelector('input[type="file"]');
  const names = [...form.querySelectorAll("#path, #url")];
  const zone = form.querySelector(".drop");

  const take = (files) => {
    const picture = [...files].find((file) => file.type.startsWith("image/") || /\.(p[pgn]m|png)$/i.test(file.name));
    if (!picture) return false;
    const transfer = new DataTransfer();
    transfer.items.add(picture);
    picker.files = transfer.files;
    ask();
    return true;
  };
  const ask = () => {
    for (const name of names) name.value = "";
    form.requestSubmit(document.getElementById("one-predict"));
  };
  const over = (event) => {
    if (![...event.dataTransfer.types].includes("Files")) return;
    event.preventDefault();
    zone.classList.add("over");
  };
  const leave = (event) => {
    if (!form.contains(event.relatedTarget)) zone.classList.remove("over");
  };
  const dropped = (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    take(event.dataTransfer.files);
  };
  const pasted = (event) => {
    if (take(event.clipboardData?.files ?? [])) event.preventDefault();
  };
  const chosen = () => picker.files.length && ask();
  const typed = (event) => {
    picker.value = "";
    for (const name of names) if (name !== event.target) name.value = "";
  };
  form.addEventListener("dragover", over);
  form.addEventListener("dragleave", leave);
  form.addEventListener("drop", dropped);
  document.addEventListener("paste", pasted);
  picker.addEventListener("change", chosen);
  for (const name of names) name.addEventListener("input", typed);
  return () => document.removeEventListener("paste", pasted);
}
