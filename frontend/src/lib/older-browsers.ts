/** What libraries use and Chrome 100 or Safari 15.4 do not have; scripts/targets.mjs looks for more in what was built. */

// nuqs; Chrome 120, Safari 17
if (typeof URL.canParse !== "function") {
  URL.canParse = (url, base) => {
    try {
      return Boolean(new URL(url, base));
    } catch {
      return false;
    }
  };
}
