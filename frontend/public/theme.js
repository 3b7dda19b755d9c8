// Before the first paint: the chosen theme on <html> (without a choice the system decides), and whether the landing
// page's markup is what this address shows (somebody may be signed in: then the page waits to know who).
try {
  var theme = localStorage.getItem("theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  if (location.pathname === "/" && !location.hash && localStorage.getItem("aidbridge-auth") === null)
    document.documentElement.dataset.landing = "";
} catch {
  // storage is closed to us: follow the system
}
