// A dialog that the server sends when it is opened for the first time, and that then stays in the page.
// It brings its style sheet along, and can be shown when that is there.
async function fetchDialog(address) {
  const answer = await fetch(address, { headers: { "HX-Request": "true" } });
  if (!answer.ok) throw new Error(`${address}: ${answer.status}`);
  const holder = document.createElement("template");
  holder.innerHTML = await answer.text();
  const dialog = holder.content.querySelector("dialog");
  if (!dialog) throw new Error(`${address}: no dialog`);
  document.body.append(holder.content);
  const sheet = dialog.querySelector('link[rel="stylesheet"]');
  if (sheet && !sheet.sheet) await new Promise((done) => { sheet.onload = sheet.onerror = done; });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close(); // outside of what it holds
  });
  return dialog;
}

export function sayNoAnswer() {
  const detail = { level: "error", text: "The studio did not answer. Try again." };
  document.dispatchEvent(new CustomEvent("ziggurat:say", { detail }));
}

// Returns a function that gives the dialog, fetched once; null where the studio did not answer, which is said.
export function dialogAt(path, prepare = (dialog) => dialog) {
  let asked = null;
  return async () => {
    asked ??= fetchDialog(`${document.body.dataset.root}${path}`).then(prepare);
    try {
      return await asked;
    } catch {
      asked = null; // the next press asks again
      sayNoAnswer();
      return null;
    }
  };
}
