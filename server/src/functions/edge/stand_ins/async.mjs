// The parts of the standard library's async that functions use.
export const delay = (milliseconds, { signal } = {}) =>
  new Promise((done, fail) => {
    if (signal?.aborted) return fail(signal.reason);
    const stop = () => { clearTimeout(timer); fail(signal.reason); };
    const timer = setTimeout(() => { signal?.removeEventListener("abort", stop); done(); }, milliseconds);
    signal?.addEventListener("abort", stop, { once: true });
  });
export const deadline = (promise, milliseconds) => {
  let timer;
  const late = new Promise((_, fail) => {
    timer = setTimeout(() => fail(new DOMException("Signal timed out.", "TimeoutError")), milliseconds);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
};
