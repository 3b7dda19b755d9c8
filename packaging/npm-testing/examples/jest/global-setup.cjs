const { startFerrobase } = require("@ferrobase/testing");

module.exports = async () => {
  globalThis.ferrobase = await startFerrobase();
  Object.assign(process.env, globalThis.ferrobase.env);
};
