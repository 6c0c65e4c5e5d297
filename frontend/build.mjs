// Builds what the studio's pages need in a browser: one small module on every page, and islands that it loads when a
// page has them. `node build.mjs OUT` writes OUT anew; nothing there is in git.
import { build, transform } from "esbuild";
import { createHash } from "node:crypto";
import { mkdir, readFile, readdir, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";

const here = dirname(fileURLToPath(import.meta.url));
const target = process.argv[2] ?? join(here, "..", "src", "ziggurat", "web", "static", "vendor");
const out = `${target}.new`; // takes the place of the old one when it is whole
const modules = join(here, "node_modules");
const styles = join(here, "..", "src", "ziggurat", "web", "static");
const WORTH_PACKING = 400; // bytes

const shared = {
  absWorkingDir: here,
  bundle: true,
  minify: true,
  sourcemap: false,
  target: ["chrome111", "firefox115", "safari16.4"],
  legalComments: "none",
  loader: { ".css": "text" },
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

// Each island is one file: what it begins later (the library that draws curves) waits in it, not in a further request.
// Small modules that two islands share are in both; a page seldom has both.
async function buildIslands() {
  const small = [...(await readFile(join(here, "src/islands.js"), "utf8")).matchAll(/from "\.\/islands\/([a-z-]+)\.js"/g)].map(([, name]) => name);
  const names = [];
  for (const name of await readdir(join(here, "src/islands"))) {
    if (!name.endsWith(".js") || small.includes(basename(name, ".js"))) continue;
    if (/^export (async )?function mount\(/m.test(await readFile(join(here, "src/islands", name), "utf8"))) names.push(name);
  }
  const { metafile } = await build({
    ...shared,
    entryPoints: names.map((name) => `src/islands/${name}`),
    outdir: out,
    format: "esm",
    entryNames: "parts/[name]-[hash]",
    metafile: true,
  });
  const found = {};
  for (const [file, { entryPoint }] of Object.entries(metafile.outputs)) {
    found[basename(entryPoint, ".js")] = relative(out, join(here, file));
  }
  return found;
}

// The script of every page asks for islands by the names that they were built under: "built-islands" is a module with a
// function for each, so that a file in src/islands is an island without being listed anywhere.
function builtIslands(files) {
  const lines = Object.entries(files).map(([name, file]) => `${JSON.stringify(name)}: () => import("./${file}")`);
  return {
    name: "built islands",
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /^built-islands$/ }, ({ path }) => ({ path, namespace: "built" }));
      onResolve({ filter: /^\.\/parts\//, namespace: "built" }, ({ path }) => ({ path, external: true }));
      onLoad({ filter: /.*/, namespace: "built" }, () => ({ contents: `export default { ${lines.join(", ")} };` }));
    },
  };
}

// What a browser asks for is compressed once, as small as it gets; the server would do it each time, and less well.
async function packed(text, path) {
  const quality = { params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: text.length } };
  await writeFile(`${path}.br`, await promisify(brotliCompress)(text, quality));
  await writeFile(`${path}.gz`, await promisify(gzip)(text, { level: 9 }));
}

async function packScripts() {
  for (const name of await readdir(out, { recursive: true })) {
    const text = name.endsWith(".js") ? await readFile(join(out, name)) : "";
    if (text.length >= WORTH_PACKING) await packed(text, join(out, name));
  }
}

// Style sheets are served as they are written, or from here, small, under the digest of what is written there: it stands
// in their address, so that a sheet which was changed since is never mistaken.
async function packStyles() {
  await mkdir(join(out, "styles"));
  for (const name of await readdir(styles, { recursive: true })) {
    if (!name.endsWith(".css") || name.startsWith("vendor")) continue;
    const text = await readFile(join(styles, name));
    const digest = createHash("sha256").update(text).digest("hex").slice(0, 12);
    const { code } = await transform(text, { loader: "css", minify: true, target: shared.target });
    await packed(Buffer.from(code), join(out, "styles", digest));
  }
}

await rm(out, { recursive: true, force: true });
await mkdir(out, { recursive: true });
const islands = await buildIslands();
await build({ ...shared, entryPoints: { studio: "src/studio.js" }, outdir: out, format: "esm", plugins: [builtIslands(islands)] });
await writeFile(join(out, "islands.json"), JSON.stringify(islands));
await build({ ...shared, entryPoints: { "graph-worker": "src/graph-worker.js" }, outdir: out, format: "iife" });
await writeFile(join(out, "licences.json"), JSON.stringify(await licences()));
await packScripts();
await packStyles();
await rm(`${target}.old`, { recursive: true, force: true });
await rename(target, `${target}.old`).catch(() => {});
await rename(out, target);
await rm(`${target}.old`, { recursive: true, force: true });
