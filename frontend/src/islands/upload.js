// Sends files and folders to the studio while their progress is shown, then names them in a field of the form.
//
// Small files share a request, large ones have their own, a few at a time: a file that fails is named, and the others
// go on. Where the connection is lost, the file that was under way is sent again when it is back. Files may be dropped
// anywhere on the page.
import { droppedFiles, pickedFiles } from "./upload/files.js";
import { sendFile, sendFiles } from "./upload/send.js";

const AT_ONCE = 4;
const BATCH_FILES = 200;
const BATCH_BYTES = 8e6;
const SHOWN = 10;
const GIVEN_UP_AFTER = 8;
const BUSY = "Wait until everything is sent, or cancel.";
const RETRY_AFTER_MS = [500, 1000, 2000, 4000, 8000, 15000, 30000];

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

function size(bytes) {
  if (bytes < 1000) return `${bytes} bytes`;
  const units = ["kB", "MB", "GB", "TB"];
  let value = bytes / 1000;
  while (value >= 1000 && units.length > 1) {
    value /= 1000;
    units.shift();
  }
  return `${value.toFixed(value < 100 ? 1 : 0)} ${units[0]}`;
}

const files = (count) => (count === 1 ? "1 file" : `${count} files`);

export function mount(place) {
  const field = document.getElementById(place.dataset.field);
  const picker = place.querySelector('input[type="file"]');
  const folders = element("input", { type: "file", id: "folder", webkitdirectory: true, hidden: true });
  const status = element("p", { role: "status" });
  const bar = element("progress", { className: "wide", max: 1, value: 0, hidden: true });
  bar.setAttribute("aria-label", "Sent");
  const cancel = element("button", { type: "button", className: "small", textContent: "Cancel", hidden: true });
  const again = element("button", { type: "button", className: "small", textContent: "Send again", hidden: true });
  const failures = element("ul");
  let run = null;

  const isAtPicker = document.activeElement === picker;

  picker.removeAttribute("name"); // they are sent from here, not with the form
  picker.hidden = true;
  place.querySelector("label").replaceWith("Drop a folder, files or an archive (zip, tar), or");
  const choose = element("button", { type: "button", className: "small", textContent: "Choose folder" });
  const chooseFiles = element("button", { type: "button", className: "small", textContent: "Choose files" });
  const sending = element("div", { className: "sending" }, status, bar, element("p", { className: "row" }, cancel, again), failures);
  place.querySelector("p").append(choose, chooseFiles);
  place.append(folders, sending);
  const tab = document.getElementById(place.dataset.tab);
  const hint = document.getElementById(place.dataset.hint);

  function show(text, isRunning) {
    const at = document.activeElement;
    status.textContent = text;
    bar.hidden = cancel.hidden = !isRunning;
    choose.disabled = chooseFiles.disabled = isRunning;
    // The focus goes from a button that is hidden now to the one that takes its place.
    if (place.contains(at) && (at.disabled || at.hidden)) (isRunning ? cancel : chooseFiles).focus();
  }

  function showFailures(failed) {
    failures.replaceChildren(
      ...failed.slice(0, SHOWN).map(({ file, reason }) => element("li", { textContent: `${file.name}: ${reason}` })),
    );
    if (failed.length > SHOWN) failures.append(element("li", { textContent: `… and ${failed.length - SHOWN} more` }));
    again.hidden = !failed.length;
  }

  function progress(state) {
    let running = 0;
    for (const bytes of state.loaded.values()) running += bytes;
    const sent = state.sent + running;
    bar.value = state.total ? Math.min(1, sent / state.total) : 1;
    const text = `Sending: ${state.done} of ${files(state.count)}, ${size(sent)} of ${size(state.total)}.`;
    if (performance.now() - state.told > 500) {
      state.told = performance.now();
      status.textContent = text;
    }
  }

  // A lost connection is no fault of a file: it is sent again, later each time, until the studio answers.
  async function resent(state, act) {
    for (let tries = 0; ; tries += 1) {
      try {
        return await act();
      } catch (error) {
        if (!error.isLost || tries >= RETRY_AFTER_MS.length || state.stop.signal.aborted) throw error;
        show("The connection is lost; sending goes on when it is back.", true);
        await new Promise((resolve) => {
          const timer = setTimeout(resolve, RETRY_AFTER_MS[tries]);
          const soon = () => {
            clearTimeout(timer);
            resolve();
          };
          state.stop.signal.addEventListener("abort", soon, { once: true });
          window.addEventListener("online", soon, { once: true });
        });
      }
    }
  }

  async function sendOne(state, file) {
    try {
      state.upload = await resent(state, () =>
        sendFile(place.dataset.uploads, file, state.upload?.id ?? "", {
          signal: state.stop.signal,
          onProgress: (bytes) => {
            state.loaded.set(file, bytes);
            progress(state);
          },
        }),
      );
      state.done += 1;
      state.inRow = 0;
    } catch (error) {
      if (state.stop.signal.aborted) return;
      state.failed.push({ file, reason: error.message });
      state.inRow += 1;
      if (state.inRow >= GIVEN_UP_AFTER || error.isFinal) state.waiting.length = 0;
    }
    state.loaded.delete(file);
    state.sent += file.blob.size;
    progress(state);
  }

  function nextSmall(state) {
    const some = [];
    let bytes = 0;
    while (state.waiting.length && some.length < BATCH_FILES && bytes + state.waiting[0].blob.size <= BATCH_BYTES) {
      bytes += state.waiting[0].blob.size;
      some.push(state.waiting.shift());
    }
    return some;
  }

  // Where a batch is refused, each file is tried alone: then it is known which one it is, and why.
  async function sendSmall(state, some) {
    try {
      state.upload = await resent(state, () =>
        sendFiles(place.dataset.uploads, some, state.upload.id, {
          signal: state.stop.signal,
          onProgress: (bytes) => {
            state.loaded.set(some, bytes);
            progress(state);
          },
        }),
      );
    } catch (error) {
      state.loaded.delete(some);
      if (state.stop.signal.aborted) return;
      if (error.isFinal) state.waiting.length = 0;
      for (const file of some) {
        if (state.inRow < GIVEN_UP_AFTER && !error.isFinal) await sendOne(state, file);
        else state.failed.push({ file, reason: error.message });
      }
      return;
    }
    state.loaded.delete(some);
    state.done += some.length;
    state.inRow = 0;
    for (const file of some) state.sent += file.blob.size;
    progress(state);
  }

  async function work(state) {
    while (state.waiting.length && !state.stop.signal.aborted) {
      const some = nextSmall(state);
      if (some.length > 1) await sendSmall(state, some);
      else await sendOne(state, some[0] ?? state.waiting.shift());
    }
  }

  async function forget(state) {
    if (state.upload) await fetch(`${place.dataset.uploads}/${state.upload.id}?forever=true`, { method: "DELETE" }).catch(() => {});
  }

  function finish(state) {
    const lost = state.count - state.done;
    if (!state.done) {
      show("Nothing was sent.", false);
    } else {
      const left = state.hidden ? ` ${state.hidden === 1 ? "1 system file" : `${state.hidden} system files`} skipped.` : "";
      show(`${files(state.done)} sent, ${size(state.upload.size_bytes)}.${lost ? ` ${files(lost)} could not be sent.` : ""}${left}`, false);
      field.value = state.upload.source;
      if (tab) tab.checked = true;
      const name = document.getElementById("name");
      if (name && !name.value && state.name) name.value = state.name;
      field.dispatchEvent(new Event("input", { bubbles: true }));
      if (place.dataset.submits !== undefined && !lost) field.form.requestSubmit(); // the next page goes on with it
    }
    showFailures(state.failed);
  }

  async function send({ files: found, hidden, name }, upload = null) {
    if (run || !found.length) {
      if (!run) show(hidden ? "Only system files were found." : "No files were found.", false);
      return;
    }
    const total = found.reduce((sum, file) => sum + file.blob.size, 0);
    run = { waiting: [...found], count: found.length, hidden, name, total, upload, done: 0, sent: 0, inRow: 0 };
    Object.assign(run, { failed: [], loaded: new Map(), stop: new AbortController(), told: 0 });
    showFailures([]);
    show(`Sending ${files(found.length)}, ${size(total)}.`, true);
    const state = run;
    if (!state.upload) await sendOne(state, state.waiting.shift()); // which makes the upload that the others join
    await Promise.all(Array.from({ length: state.upload ? AT_ONCE : 0 }, () => work(state)));
    while (!state.upload && state.waiting.length && !state.stop.signal.aborted) await sendOne(state, state.waiting.shift());
    run = null;
    if (state.stop.signal.aborted) {
      await forget(state);
      show("Canceled; the sent files are deleted.", false);
      if (state.upload && field.value === state.upload.source) {
        field.value = ""; // it named what was sent before *Send again*, which is deleted, too
        field.dispatchEvent(new Event("input", { bubbles: true }));
      }
      return;
    }
    for (const file of state.waiting) state.failed.push({ file, reason: "not sent" });
    last = state;
    finish(state);
  }

  let last = null;
  const hasFiles = (event) => event.dataTransfer?.types.includes("Files");
  const dropped = async (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    hint.hidden = true;
    if (tab) tab.checked = true;
    if (run) {
      show(BUSY, true);
      return;
    }
    show("Reading the folder …", false);
    let found;
    try {
      found = await droppedFiles(event.dataTransfer);
    } catch (error) {
      show(`The folder could not be read: ${error.message} Choose it with the button.`, false);
      return;
    }
    send(found);
  };
  const over = (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    hint.hidden = false;
  };
  const leave = (event) => {
    if (!event.relatedTarget) hint.hidden = true; // it left the window
  };
  const guard = (event) => {
    if (!run) return;
    event.preventDefault();
    if (tab) tab.checked = true;
    show(BUSY, true);
    place.scrollIntoView({ block: "nearest" });
  };

  choose.addEventListener("click", () => folders.click());
  chooseFiles.addEventListener("click", () => picker.click());
  const take = (input) => {
    const found = pickedFiles(input.files);
    input.value = "";
    send(found);
  };
  for (const input of [picker, folders]) {
    input.addEventListener("change", () => take(input));
    // The form is checked when its fields change; these are none of them.
    for (const kind of ["input", "change"]) input.addEventListener(kind, (event) => event.stopPropagation());
  }
  cancel.addEventListener("click", () => run?.stop.abort());
  again.addEventListener("click", () => {
    const upload = last.upload;
    send({ files: last.failed.map(({ file }) => file), hidden: last.hidden, name: last.name }, upload);
  });
  const listeners = { drop: dropped, dragover: over, dragleave: leave };
  for (const [kind, act] of Object.entries(listeners)) document.addEventListener(kind, act);
  field.form.addEventListener("submit", guard);
  if (isAtPicker) chooseFiles.focus();
  if (picker.files.length) take(picker); // chosen before this script was here
  return () => {
    run?.stop.abort();
    for (const [kind, act] of Object.entries(listeners)) document.removeEventListener(kind, act);
  };
}
