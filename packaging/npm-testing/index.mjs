import testing from "./index.cjs";

export const { startFerrobase, connectFerrobase } = testing;
