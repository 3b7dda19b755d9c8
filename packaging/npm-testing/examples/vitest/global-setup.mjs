import { startFerrobase } from "@ferrobase/testing";

export default async function setup() {
  // Below `ferrobase test --` there is a copy already.
  if (process.env.FERROBASE_TEST_FOLDER) return;
  const ferrobase = await startFerrobase();
  Object.assign(process.env, ferrobase.env);
  return () => ferrobase.stop();
}
