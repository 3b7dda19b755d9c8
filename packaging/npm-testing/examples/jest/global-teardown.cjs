module.exports = () => globalThis.ferrobase.stop();
