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

const options = { bundle: true, minify: true, write: false, legalComments: "inline", charset: "utf8" };
const script = (await build({ ...options, entryPoints: [join(here, "source/main.js")], format: "iife", target: "es2022" }))
  .outputFiles[0].text;
const style = (await build({ ...options, entryPoints: [join(here, "source/style.css")] })).outputFiles[0].text;
const page = read("source/page.html").replace("/* style.css */", () => style.trim());

const sources = ["package.json", "package-lock.json", "build.mjs"];
sources.push(...readdirSync(join(here, "source")).map((name) => `source/${name}`));
const recorded = {
  "viewer.js": sha256(script),
  "page.html": sha256(page),
  sources: sha256(sources.sort().map((name) => `${name}\n${read(name)}`).join("")),
  three: JSON.parse(read("package.json")).dependencies.three,
};
writeFileSync(join(target, "viewer.js"), script);
writeFileSync(join(target, "page.html"), page);
writeFileSync(join(target, "bundle.json"), `${JSON.stringify(recorded, null, 2)}\n`);
console.log(`viewer.js ${Math.round(script.length / 1000)} kB, page.html ${Math.round(page.length / 1000)} kB`);
