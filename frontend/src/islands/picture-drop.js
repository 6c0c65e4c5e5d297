// Predicts as soon as an image is chosen, dropped or pasted; a file, a path and an address exclude each other.
const COLD_MS = 1500;

export function mount(form) {
  const picker = form.querySelector('input[type="file"]');
  const names = [...form.querySelectorAll("#path, #url")];
  const zone = form.querySelector(".drop");
  const shown = form.querySelector("#picture-name");
  const busy = form.querySelector("#test-busy");
  const words = busy.querySelector("span");
  const usual = words.textContent;
  let timer = 0;

  // One image is asked about; where no file is one, the server says what is wrong with the first.
  const take = (files) => {
    const all = [...files];
    const picture = all.find((file) => file.type.startsWith("image/") || /\.(p[pgn]m|png)$/i.test(file.name)) ?? all[0];
    if (!picture) return false;
    const transfer = new DataTransfer();
    transfer.items.add(picture);
    picker.files = transfer.files;
    ask();
    if (all.length > 1) shown.textContent = `${picture.name}, one of ${all.length} files. "Many images" takes all of them.`;
    return true;
  };
  const showName = () => {
    shown.hidden = !picker.files.length;
    shown.textContent = picker.files[0]?.name ?? "";
  };
  const ask = () => {
    for (const name of names) name.value = "";
    showName();
    form.requestSubmit(document.getElementById("one-predict"));
  };
  // An answer takes milliseconds, or the seconds of a framework that starts: then it is said what is waited for.
  const begin = () => {
    clearTimeout(timer);
    words.textContent = usual;
    timer = setTimeout(() => { words.textContent = busy.dataset.cold; }, COLD_MS);
  };
  const end = () => clearTimeout(timer);
  const over = (event) => {
    if (![...event.dataTransfer.types].includes("Files")) return;
    event.preventDefault();
    zone.classList.add("over");
  };
  const leave = (event) => {
    if (!form.contains(event.relatedTarget)) zone.classList.remove("over");
  };
  const dropped = (event) => {
    if (!event.dataTransfer.files.length) return; // a text goes into its field
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
    showName();
    for (const name of names) if (name !== event.target) name.value = "";
  };
  form.addEventListener("dragover", over);
  form.addEventListener("dragleave", leave);
  form.addEventListener("drop", dropped);
  document.addEventListener("paste", pasted);
  picker.addEventListener("change", chosen);
  form.addEventListener("htmx:before:request", begin);
  form.addEventListener("htmx:finally:request", end);
  for (const name of names) name.addEventListener("input", typed);
  return () => {
    clearTimeout(timer);
    document.removeEventListener("paste", pasted);
  };
}
