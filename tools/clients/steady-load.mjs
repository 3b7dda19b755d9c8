// Requests at a fixed rate through a load balancer while instances behind it are restarted; used by instances.mjs and containers.mjs.
import { Agent, request as httpRequest } from "node:http";

/** Whose refusal it is: ours has a code, a balancer's is a page. */
function reason(text) {
  try {
    const { code, error_code, message, msg } = JSON.parse(text);
    return `${error_code ?? code}: ${message ?? msg}`;
  } catch {
    return text.match(/<(?:title|h1)>(.*?)<\//)?.[1] ?? text.slice(0, 80);
  }
}

/** How often each of them occurs, the most frequent first. */
export function counted(texts) {
  const counts = new Map();
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
  return [...counts].sort(([, a], [, b]) => b - a).map(([text, n]) => `${n} × ${text}`);
}

/**
 * Sends requests to `front` at `rate` a second until the returned function is called, and records each failure.
 * `kinds` are sent in turn: `{ method, path, headers, body }`, where `body` is a function of the request's number.
 * The result's `written` counts the acknowledged POSTs.
 */
export function load(front, rate, kinds) {
  const agent = new Agent({ keepAlive: true, maxSockets: 64 });
  const failed = [];
  let [sent, answered, written, running] = [0, 0, 0, true];
  const took = [];
  const one = (n) => {
    const { method, path, headers, body: make } = kinds[n % kinds.length];
    const body = make?.(n);
    const since = performance.now();
    return new Promise((done) => {
      const asked = httpRequest(
        `${front}${path}`,
        {
          method,
          agent,
          headers: {
            ...headers,
            ...(body ? { "content-type": "application/json", "content-length": Buffer.byteLength(body) } : {}),
          },
        },
        (answer) => {
          let text = "";
          answer.setEncoding("utf8").on("data", (piece) => (text += piece));
          answer.on("error", (error) => {
            failed.push(`${method} ${path}: ${error.message}`);
            done();
          });
          answer.on("end", () => {
            answered++;
            took.push(performance.now() - since);
            if (answer.statusCode >= 400) failed.push(`${method} ${path}: ${answer.statusCode} ${reason(text)}`);
            else if (method === "POST") written++;
            done();
          });
        },
      );
      asked.on("error", (error) => {
        failed.push(`${method} ${path}: ${error.message} (${error.code}, ${asked.reusedSocket ? "kept" : "new"} connection)`);
        done();
      });
      asked.end(body);
    });
  };
  const under_way = new Set();
  const begun = performance.now();
  const timer = setInterval(() => {
    const due = Math.floor(((performance.now() - begun) * rate) / 1000);
    while (running && sent < due) {
      const work = one(sent++).finally(() => under_way.delete(work));
      under_way.add(work);
    }
  }, 5);
  return async () => {
    running = false;
    clearInterval(timer);
    await Promise.all(under_way);
    agent.destroy();
    took.sort((a, b) => a - b);
    const seconds = (performance.now() - begun) / 1000;
    return { sent, answered, failed, written, seconds, p99: took[Math.floor(took.length * 0.99)] ?? 0 };
  };
}
