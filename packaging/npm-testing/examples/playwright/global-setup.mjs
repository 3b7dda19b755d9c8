import { startFerrobase } from "@ferrobase/testing";

export default async function setup() {
  const ferrobase = await startFerrobase();
  // Of the tests. Playwright starts its `webServer` before this: with one, run `ferrobase test -- playwright test` instead.
  Object.assign(process.env, ferrobase.env);
  return () => ferrobase.stop();
}
