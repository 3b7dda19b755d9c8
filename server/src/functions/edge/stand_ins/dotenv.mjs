// Settings come from the environment. There are no .env files beside a function.
export const config = () => Deno.env.toObject();
export const configSync = config;
export const load = async () => Deno.env.toObject();
export const loadSync = config;
export const parse = (text) => Object.fromEntries(
  text.split("\n").map((line) => /^\s*(?:export\s+)?([\w.-]+)\s*=\s*(.*?)\s*$/.exec(line)).filter(Boolean)
    .map(([, name, value]) => [name, value.replace(/^(["'`])(.*)\1$/, "$2")]),
);
