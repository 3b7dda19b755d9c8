#!/usr/bin/env node
// Runs the ferrobase of this platform, which npm has installed as an optional package beside this one.
import { spawn } from "node:child_process";
import { createRequire } from "node:module";

/** Oldest glibc that the Linux binaries run on; packaging replaces it by the one that it has checked. */
const OLDEST_GLIBC = "@OLDEST_GLIBC@";

/** Says in one line why nothing runs, and ends. */
function refuse(reason) {
  console.error(`ferrobase: ${reason}`);
  process.exit(1);
}

const platform = `${process.platform}-${process.arch}`;
const isOlder = (version, than) => {
  const [a, b] = [version, than].map((text) => text.split(".").map(Number));
  return a[0] < b[0] || (a[0] === b[0] && a[1] < b[1]);
};

if (process.platform === "linux") {
  const glibc = process.report.getReport().header.glibcVersionRuntime;
  const needed = `this Linux has ${glibc ? `glibc ${glibc}` : "another C library"}; ferrobase needs glibc ${OLDEST_GLIBC} or newer`;
  if (!glibc || isOlder(glibc, OLDEST_GLIBC)) refuse(`${needed}: use its container image, or build it from source`);
}

let program;
try {
  program = createRequire(import.meta.url).resolve(`@ferrobase/${platform}/ferrobase`);
} catch {
  refuse(`there is no package for ${platform}, or it was left out (npm --omit=optional): build it from source`);
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
// A terminal sends its signals to the whole group; what is sent to this process alone is handed on.
for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
process.on("SIGINT", () => undefined);
child.on("error", (error) => refuse(`${program} cannot be run: ${error.message}`));
child.on("exit", (code, signal) => {
  if (signal) process.kill(process.pid, signal);
  else process.exit(code ?? 1);
});
