// Before the first paint: sets the chosen theme on <html> (without a choice the system decides), and shows the
// address's prerendered page (unless somebody may be signed in: then the page waits). Its code is preloaded now, not
// when the app finds out that it needs it.
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
  var stands = at && plain && localStorage.getItem("aidbridge-auth") === null;
  if (stands) document.documentElement.dataset.landing = at;
  var preload = function (rel, href) {
    var link = document.createElement("link");
    link.rel = rel;
    link.href = href;
    if (rel === "preload") {
      link.as = "fetch";
      link.crossOrigin = "anonymous";
    }
    document.head.append(link);
  };
  var known = JSON.parse(document.currentScript.dataset.files || "{}");
  var files = known[at] || [];
  if (at === "ask") {
    preload("preload", "/functions/v1/get-categories");
    // the first question comes before the web font: see src/lib/fonts.ts
    if (stands && localStorage.getItem("aidbridge-fonts") === null) document.documentElement.dataset.fonts = "later";
    if (!stands) files = files.concat(known.form || []);
  }
  for (var i = 0; i < files.length; i += 1) preload("modulepreload", files[i]);
} catch {
  // storage is closed to us: follow the system
}
