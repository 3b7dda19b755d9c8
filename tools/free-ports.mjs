// Prints COUNT free ports and reserves them until it is killed or its parent ends:
//   node tools/free-ports.mjs COUNT
// A port that was only seen to be free may be taken before it is used: by a concurrent run, or as the local end of any
// connection. So these ports are below the ephemeral range, in blocks of ten. The first port of a block is a lock:
// while it is held here, the block is reserved.
import { createServer } from "node:net";

const count = Number(process.argv[2] ?? "1");
const [FIRST, BLOCKS, BLOCK] = [20_000, 1_200, 10];
if (!(count >= 1 && count < BLOCK)) throw new Error(`free-ports.mjs: from 1 to ${BLOCK - 1} ports, not ${process.argv[2]}`);

/** The listening server, or null if the port is taken. */
const listen = (port) =>
  new Promise((done) => {
    const server = createServer();
    server.once("error", () => done(null));
    server.listen(port, "127.0.0.1", () => done(server));
  });
const close = (server) => new Promise((done) => server.close(done));

async function block() {
  for (let tries = 0; tries < BLOCKS; tries++) {
    const first = FIRST + BLOCK * Math.floor(Math.random() * BLOCKS);
    const guard = await listen(first);
    if (!guard) continue;
    const ports = Array.from({ length: count }, (_, index) => first + 1 + index);
    const held = await Promise.all(ports.map(listen));
    await Promise.all(held.filter(Boolean).map(close));
    if (held.every(Boolean)) return ports;
    await close(guard);
  }
  throw new Error("free-ports.mjs: no free ports");
}

const parent = process.ppid;
console.log((await block()).join(" "));
setInterval(() => {
  if (process.ppid !== parent) process.exit();
}, 1_000);
