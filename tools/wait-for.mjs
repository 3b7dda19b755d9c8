// Waits until a URL answers 2xx: wait-for.mjs URL [PID]. Fails after five minutes, or as soon as the process has ended.
const [url, pid] = process.argv.slice(2);
const deadline = Date.now() + 300_000;
const alive = () => {
  try {
    process.kill(Number(pid), 0);
    return true;
  } catch {
    return false;
  }
};

for (;;) {
  try {
    if ((await fetch(url)).ok) break;
  } catch {
    // not listening yet
  }
  if (pid && !alive()) {
    console.error("the server ended before it answered");
    process.exit(1);
  }
  if (Date.now() > deadline) {
    console.error(`${url} did not answer within five minutes`);
    process.exit(1);
  }
  await new Promise((resolve) => setTimeout(resolve, 100));
}
