// Puts the chosen theme on <html> before the first paint; without a choice the system decides.
try {
  var theme = localStorage.getItem("theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // storage is closed to us: follow the system
}
