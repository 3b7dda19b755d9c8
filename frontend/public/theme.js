// Before the first paint: the chosen theme on <html> (without a choice the system decides), and which of the pages that
// stand in index.html this address shows (somebody may be signed in: then the page waits to know who). Their code is asked
// for now, not when the app has found out that it needs it.
try {
  var theme = localStorage.getItem("theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  var at = {
    "/": "home",
    "/request-submission": "ask",
    "/submit-request": "ask",
    "/login": "login",
    "/nonprofit-login": "login",
    "/request-status": "lookup",
  }[location.pathname];
  // what the address adds would change the page under the reader's eyes
  var plain = !location.hash && !/[?&](code|error|error_description|form|step|draft)=/.test(location.search);
  if (at && plain && localStorage.getItem("aidbridge-auth") === null) document.documentElement.dataset.landing = at;
  var files = JSON.parse(document.currentScript.dataset.files || "{}")[at] || [];
  for (var i = 0; i < files.length; i += 1) {
    var link = document.createElement("link");
    link.rel = "modulepreload";
    link.href = files[i];
    document.head.append(link);
  }
} catch {
  // storage is closed to us: follow the system
}
