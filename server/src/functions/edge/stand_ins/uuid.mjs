// The parts of the standard library's uuid that functions use.
const PATTERN = /^[0-9a-f]{8}-[0-9a-f]{4}-([0-9a-f])[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
export const validate = (text) => PATTERN.test(text);
export const version = (text) => Number.parseInt(PATTERN.exec(text)?.[1] ?? "NaN", 16);
const of = (number) => ({ validate: (text) => version(text) === number });
export const v1 = of(1);
export const v4 = { ...of(4), generate: () => crypto.randomUUID() };
export const v5 = of(5);
export const NIL_UUID = "00000000-0000-0000-0000-000000000000";
