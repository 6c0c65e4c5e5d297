// Which files a person chose or dropped, with their names below the folder; files of a system are left out.
const SYSTEM = new Set(["__MACOSX", "Thumbs.db", "desktop.ini", "$RECYCLE.BIN", "System Volume Information"]);

function isHidden(name) {
  return name.split("/").some((part) => part.startsWith(".") || SYSTEM.has(part));
}

// A folder that holds everything says nothing of the samples: its name becomes that of the dataset.
function collected(all) {
  const kept = all.filter((file) => !isHidden(file.name));
  const roots = new Set(kept.map((file) => (file.name.includes("/") ? file.name.split("/")[0] : "")));
  const root = roots.size === 1 ? [...roots][0] : "";
  const files = root ? kept.map((file) => ({ ...file, name: file.name.slice(root.length + 1) })) : kept;
  const single = kept.length === 1 ? kept[0].name.replace(/(\.tar)?\.[^.]+$/, "") : "";
  return { files, hidden: all.length - kept.length, name: root || single };
}

export function pickedFiles(list) {
  return collected([...list].map((blob) => ({ name: blob.webkitRelativePath || blob.name, blob })));
}

function entries(reader) {
  return new Promise((resolve, reject) => reader.readEntries(resolve, reject));
}

async function walk(entry, found) {
  const name = entry.fullPath.replace(/^\//, "");
  if (entry.isFile) {
    const blob = await new Promise((resolve) => entry.file(resolve, () => resolve(null)));
    if (blob) found.push({ name, blob });
    return;
  }
  const reader = entry.createReader();
  for (let some = await entries(reader); some.length; some = await entries(reader)) {
    for (const each of some) await walk(each, found);
  }
}

export async function droppedFiles(transfer) {
  const roots = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!roots.length) return pickedFiles(transfer.files);
  const found = [];
  for (const root of roots) await walk(root, found);
  return collected(found);
}
