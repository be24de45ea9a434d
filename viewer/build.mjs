// Makes the page that fabric-rl serves: viewer/source -> fabric_rl/viewer. Run `npm ci && npm run build` in this folder.
//
// bundle.json records what was built from what: the checksum of the page, of the script and of all sources. A test
// compares them, so that nobody commits a source without its bundle, or a bundle that nobody can build.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const target = join(here, "..", "fabric_rl", "viewer");
const read = (name) => readFileSync(join(here, name), "utf8").replaceAll("\r\n", "\n");
const sha256 = (text) => createHash("sha256").update(text).digest("hex");

const licence = read("node_modules/three/LICENSE").trim(); // its text must be in every copy, and the script is in every page
const options = { bundle: true, minify: true, write: false, legalComments: "inline", charset: "utf8" };
const script = (await build({ ...options, entryPoints: [join(here, "source/main.js")], format: "iife", target: "es2022", banner: { js: `/*! three.js: ${licence} */` } }))
  .outputFiles[0].text;
const style = async (name) => (await build({ ...options, entryPoints: [join(here, `source/${name}`)] })).outputFiles[0].text.trim();
const page = async (name, css) => read(`source/${name}`).replace(`/* ${css} */`, (await style(css)).replaceAll("$", "$$$$"));
const pages = { "page.html": await page("page.html", "style.css"), "play.html": await page("play.html", "play.css") };

const sources = ["package.json", "package-lock.json", "build.mjs"];
sources.push(...readdirSync(join(here, "source")).map((name) => `source/${name}`));
const recorded = {
  "viewer.js": sha256(script),
  ...Object.fromEntries(Object.entries(pages).map(([name, text]) => [name, sha256(text)])),
  sources: sha256(sources.sort().map((name) => `${name}\n${read(name)}`).join("")),
  three: JSON.parse(read("package.json")).dependencies.three,
};
writeFileSync(join(target, "viewer.js"), script);
for (const [name, text] of Object.entries(pages)) writeFileSync(join(target, name), text);
writeFileSync(join(target, "bundle.json"), `${JSON.stringify(recorded, null, 2)}\n`);
console.log(`viewer.js ${Math.round(script.length / 1000)} kB, page.html ${Math.round(pages["page.html"].length / 1000)} kB`);
