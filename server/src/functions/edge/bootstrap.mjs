// Runs in Deno before an edge function: adds what Supabase's runtime provides beyond Deno, and removes what it does not allow.
// Messages to the server are lines on stdout that begin with this process's token. All other output is the function's own.

import { AsyncLocalStorage } from "node:async_hooks";
import { Worker as Thread } from "node:worker_threads";

const take = (name) => {
  const value = Deno.env.get(name);
  Deno.env.delete(name);
  return value;
};
const token = take("FERROBASE_WORKER_TOKEN");
const entry = take("FERROBASE_WORKER_ENTRY");
const secret = take("FERROBASE_WORKER_SECRET");

const encoder = new TextEncoder();
const write = Deno.stdout.writeSync.bind(Deno.stdout);
const tell = (what, detail = "") => write(encoder.encode(`${token} ${what} ${detail}\n`));

// --- output: what a function writes while it handles a request is enclosed in two lines that name the request
const requests = new AsyncLocalStorage();
const streams = [
  [write, ["log", "info", "debug", "dir", "dirxml", "table", "count", "timeEnd", "timeLog", "group"]],
  [Deno.stderr.writeSync.bind(Deno.stderr), ["warn", "error", "trace", "assert"]],
];
for (const [begin, names] of streams) {
  for (const name of names) {
    const original = console[name]?.bind(console);
    if (!original) continue;
    console[name] = (...args) => {
      const id = requests.getStore();
      if (!id) return original(...args);
      begin(encoder.encode(`${token} for ${id}\n`));
      try {
        return original(...args);
      } finally {
        begin(encoder.encode(`${token} for\n`));
      }
    };
  }
}

// --- names by which the CLI's containers know this machine and its API, on a developer's machine
const api = new URL(Deno.env.get("SUPABASE_URL") ?? "http://none.invalid");
if (["127.0.0.1", "localhost"].includes(api.hostname)) {
  const here = (text) => {
    if (!/^https?:\/\/(host\.docker\.internal|kong|supabase_kong_)/.test(text)) return undefined;
    const url = new URL(text);
    const isApi = url.port === "8000" && /^(kong$|supabase_kong_)/.test(url.hostname);
    if (isApi) [url.hostname, url.port] = [api.hostname, api.port];
    else if (url.hostname === "host.docker.internal") url.hostname = "127.0.0.1";
    return url;
  };
  const fetch = globalThis.fetch;
  globalThis.fetch = (input, init) => {
    if (input instanceof Request) {
      const url = here(input.url);
      return fetch(url ? new Request(url, input) : input, init);
    }
    return fetch(here(String(input)) ?? input, init);
  };
}

// --- promises that outlive their request, and the end of the process
const pending = new Set();
let open = 0;
const count = () => tell("open", `${open} ${pending.size}`);
const track = (promise) => {
  pending.add(promise);
  count();
  const done = () => { pending.delete(promise); count(); };
  promise.then(done, (error) => { console.error(error); done(); });
};
globalThis.EdgeRuntime = Object.freeze({
  waitUntil(promise) {
    const kept = Promise.resolve(promise);
    track(kept);
    return kept;
  },
});
globalThis.Supabase = Object.freeze({
  ai: Object.freeze({
    // Functions create sessions at startup. Only the use of a model fails.
    Session: class {
      async run() {
        throw new Error("Supabase.ai is not served here: there is no model");
      }
    },
  }),
});

const refuse = (name) => () => {
  throw new Deno.errors.NotSupported(`Deno.${name} is not supported in edge functions`);
};
const replace = (name, value) => Object.defineProperty(Deno, name, { value, configurable: true, writable: true });
const serve = Deno.serve;
const listen = Deno.listen;
const exit = Deno.exit;
replace("exit", () => {});
replace("addSignalListener", () => {});
replace("removeSignalListener", () => {});
for (const name of ["run", "kill", "chdir", "symlink", "symlinkSync", "link", "linkSync", "chmod", "chown"]) {
  if (name in Deno) replace(name, refuse(name));
}
replace("Command", class { constructor() { refuse("Command")(); } });
for (const name of ["set", "delete"]) {
  const change = Deno.env[name].bind(Deno.env);
  const value = (...args) => {
    // npm packages write to `process.env`, which ends up here.
    if (new Error().stack?.includes("ext:deno_node/")) return change(...args);
    return refuse(`env.${name}`)();
  };
  Object.defineProperty(Deno.env, name, { value, configurable: true });
}
// No threads, which would have a heap of their own beside the function's limit. As there, libraries find `Worker` missing.
delete globalThis.Worker;
Object.setPrototypeOf(Thread, class { constructor() { throw new Error("Not implemented: Worker.prototype.constructor"); } });

// --- requests
const SECRET = "x-ferrobase-worker";
const handle = (handler) => (request, info) =>
  requests.run(request.headers.get("x-request-id"), () => answer(handler, request, info));
const answer = async (handler, request, info) => {
  if (request.headers.get(SECRET) !== secret) return new Response("Forbidden", { status: 403 });
  const headers = new Headers(request.headers);
  headers.delete(SECRET);
  const isUpgrade = headers.get("upgrade")?.toLowerCase() === "websocket";
  // The function must not see the server's own header. An upgrade needs the original request.
  const seen = isUpgrade ? request : new Request(request, { headers });
  open += 1;
  // The server has to know how many requests share the processor's time.
  if (open > 1) count();
  try {
    const response = await handler(seen, info);
    if (!(response instanceof Response)) throw new TypeError("the handler did not return a Response");
    return response;
  } catch (error) {
    if (request.signal.aborted) return new Response(null, { status: 499 });
    console.error(error);
    return new Response("Internal Server Error", {
      status: 500,
      headers: { "content-type": "text/plain;charset=UTF-8", "sb-error-code": "EDGE_FUNCTION_ERROR" },
    });
  } finally {
    open -= 1;
    count();
  }
};

let listening = false;
const listened = (port, how = "") => {
  if (!listening) {
    listening = true;
    farewell();
    tell("port", `${port} ${how}`);
  }
};
replace("serve", (...args) => {
  let handler = args.find((arg) => typeof arg === "function");
  const options = args.find((arg) => arg && typeof arg === "object") ?? {};
  handler ??= options.handler ?? options.fetch;
  if (typeof handler !== "function") throw new TypeError("Deno.serve needs a handler");
  return serve({
    hostname: "127.0.0.1",
    port: 0,
    signal: options.signal,
    onError: options.onError,
    onListen: ({ port, hostname }) => {
      options.onListen?.({ port, hostname, transport: "tcp" });
      listened(port, "counting");
    },
  }, handle(handler));
});
// `serve` of the old standard library listens directly.
replace("listen", (options) => {
  const listener = listen({ ...options, hostname: "127.0.0.1", port: 0 });
  listened(listener.addr.port);
  return listener;
});

// --- shutdown: requested by a line on stdin. Started only once the function's own module runs, because Deno waits for everything
// that this module starts.
let hears = false;
const farewell = async () => {
  if (hears) return;
  hears = true;
  const reader = Deno.stdin.readable.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (true) {
    const { value, done } = await reader.read();
    // The server has ended in some way.
    if (done) exit(0);
    text += value;
    let end;
    while ((end = text.indexOf("\n")) >= 0) {
      const reason = text.slice(0, end);
      text = text.slice(end + 1);
      globalThis.dispatchEvent(new CustomEvent("beforeunload", { detail: { reason } }));
      count();
    }
  }
};
addEventListener("unhandledrejection", (event) => {
  event.preventDefault();
  console.error(event.reason);
});

// --- after the function's own module has run
const BEGINS_LATER = 10_000;
addEventListener("load", async () => {
  farewell();
  if (listening) return;
  let entrance;
  try {
    ({ default: entrance } = await import(entry));
  } catch {
    // It threw when it was loaded, and the error has been printed.
    tell("failed");
    return;
  }
  if (listening) return;
  if (typeof entrance?.fetch === "function") {
    Deno.serve(entrance.fetch.bind(entrance));
    return;
  }
  setTimeout(() => {
    if (listening) return;
    console.error("The function neither calls Deno.serve nor exports an object with fetch as its default");
    tell("failed");
  }, BEGINS_LATER);
});
