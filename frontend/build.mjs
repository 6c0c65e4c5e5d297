// Builds what the studio's pages need in a browser: one small module on every page, and islands that it loads when a
// page has them. `node build.mjs OUT` writes OUT anew; nothing there is in git.
import { build } from "esbuild";
import { copyFile, mkdir, readFile, readdir, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const target = process.argv[2] ?? join(here, "..", "src", "ziggurat", "web", "static", "vendor");
const out = `${target}.new`; // takes the place of the old one when it is whole
const modules = join(here, "node_modules");

const shared = {
  absWorkingDir: here,
  bundle: true,
  minify: true,
  sourcemap: false,
  target: ["chrome111", "firefox115", "safari16.4"],
  legalComments: "none",
  logLevel: "warning",
};

async function licences() {
  const names = [];
  for (const name of await readdir(modules)) {
    if (name.startsWith(".")) continue;
    if (!name.startsWith("@")) names.push(name);
    else for (const part of await readdir(join(modules, name))) names.push(`${name}/${part}`);
  }
  const lock = JSON.parse(await readFile(join(here, "package-lock.json"), "utf8"));
  const found = [];
  for (const name of names.sort()) {
    const noted = lock.packages[`node_modules/${name}`];
    if (!noted || noted.dev || noted.optional) continue;
    const folder = join(modules, name);
    const about = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
    const file = (await readdir(folder)).find((each) => /^(licen[cs]e|copying)/i.test(each));
    const text = file ? await readFile(join(folder, file), "utf8") : "";
    found.push({ name, version: about.version, licence: about.license ?? "", text });
  }
  return found;
}

// Files that a script needs, without itself, in the order in which a browser finds them.
function needed(outputs, file) {
  const found = [];
  for (const { path, kind } of outputs[file].imports) {
    if (kind === "import-statement") found.push(path, ...needed(outputs, path));
  }
  return [...new Set(found)];
}

// A helper of esbuild has no effect of its own, so whoever takes nothing from it need not wait for it.
async function dropIdleImports(outputs) {
  const helpers = Object.keys(outputs).filter((file) => Object.keys(outputs[file].inputs).every((name) => name === "<runtime>"));
  for (const helper of helpers) {
    const idle = new RegExp(`import"\\./(parts/)?${basename(helper)}";`, "g");
    for (const file of Object.keys(outputs)) {
      const text = await readFile(join(here, file), "utf8");
      if (!idle.test(text)) continue;
      await writeFile(join(here, file), text.replace(idle, ""));
      outputs[file].imports = outputs[file].imports.filter(({ path }) => path !== helper);
    }
  }
}

// Which files an island is made of, so that a page that has it can ask for all of them at once.
function islandFiles(outputs) {
  const found = {};
  for (const [file, { entryPoint }] of Object.entries(outputs)) {
    const name = /^src\/islands\/([a-z-]+)\.js$/.exec(entryPoint ?? "")?.[1];
    if (name) found[name] = [file, ...needed(outputs, file)].map((each) => relative(out, join(here, each)));
  }
  return found;
}

await rm(out, { recursive: true, force: true });
await mkdir(out, { recursive: true });
const { metafile } = await build({
  ...shared,
  entryPoints: { studio: "src/studio.js" },
  outdir: out,
  format: "esm",
  splitting: true,
  chunkNames: "parts/[name]-[hash]",
  metafile: true,
});
await dropIdleImports(metafile.outputs);
await writeFile(join(out, "islands.json"), JSON.stringify(islandFiles(metafile.outputs)));
// The theme is set before the first paint, so it is a plain script that the page waits for.
await build({ ...shared, entryPoints: { theme: "src/theme.js" }, outdir: out, format: "iife" });
await build({ ...shared, entryPoints: { "graph-worker": "src/graph-worker.js" }, outdir: out, format: "iife" });
await copyFile(join(modules, "uplot", "dist", "uPlot.min.css"), join(out, "uplot.css"));
await writeFile(join(out, "licences.json"), JSON.stringify(await licences()));
await rm(`${target}.old`, { recursive: true, force: true });
await rename(target, `${target}.old`).catch(() => {});
await rename(out, target);
await rm(`${target}.old`, { recursive: true, force: true });
