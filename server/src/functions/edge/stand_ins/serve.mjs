// `serve` of deno.land/std/http/server.ts, implemented with Deno.serve.
export const serve = (handler, { port, hostname, signal, onListen, onError } = {}) =>
  Deno.serve({ port, hostname, signal, onListen, onError }, handler).finished;
