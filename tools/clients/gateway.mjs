// gateway.mjs PORT AUTH_PORT KEY…: a Supabase gateway with only the auth API behind it, for requests with one of the
// keys.
import http from "node:http";

const [port, auth] = process.argv.slice(2, 4).map(Number);
const keys = process.argv.slice(4);
// Paths that browsers open without a key.
const OPEN = /^\/(verify|callback|authorize|\.well-known|oauth|sso)/;
const CORS = { "access-control-allow-origin": "*", "access-control-allow-headers": "*", "access-control-allow-methods": "*" };
http
  .createServer((request, response) => {
    const path = request.url.startsWith("/auth/v1") ? request.url.slice("/auth/v1".length) : undefined;
    if (path === undefined) return response.writeHead(404).end("no Route matched with those values");
    if (request.method === "OPTIONS") return response.writeHead(204, CORS).end();
    if (!OPEN.test(path) && !keys.includes(request.headers.apikey)) {
      return response.writeHead(401, { ...CORS, "content-type": "application/json" }).end(JSON.stringify({ message: "Invalid API key" }));
    }
    const upstream = http.request(
      { host: "127.0.0.1", port: auth, path, method: request.method, headers: request.headers },
      (answer) => {
        response.writeHead(answer.statusCode, answer.headers);
        answer.pipe(response);
      },
    );
    upstream.on("error", () => response.writeHead(502).end());
    request.pipe(upstream);
  })
  .listen(port, "127.0.0.1");
