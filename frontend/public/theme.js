// Before the first paint: the chosen theme on <html> (without a choice the system decides), and whether the page that stands in
// this file is shown: not where somebody may be signed in (then it waits to know who), nor in another language than the reader's.
// The code of the page and the words of its language are asked for now, not when the app has found out that it needs them.
try {
  var root = document.documentElement;
  var theme = localStorage.getItem("theme");
  if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  var at = {
    "/": "home",
    "/request-submission": "ask",
    "/submit-request": "ask",
    "/login": "login",
    "/nonprofit-login": "login",
    "/request-status": "lookup",
  }[location.pathname];
  // `at`: what stands in this file, which a service worker may give for another address; see scripts/prerender.mjs
  var told = JSON.parse(document.currentScript.dataset.files || "{}");
  var words = told.words || {};
  // as `chooseLocale` in src/messages/locale.ts
  var wishes = [/[?&]lang=([^&#]*)/.exec(location.search)?.[1], localStorage.getItem("aidbridge-language")];
  var language = wishes
    .concat(navigator.languages || [])
    .map((wish) => (wish || "").toLowerCase().split(/[-_]/)[0])
    .find((wish) => words[wish]);
  // what the address adds would change the page under the reader's eyes
  var plain = !location.hash && !/[?&](code|error|error_description|form|step|draft)=/.test(location.search);
  var stands =
    at &&
    at === told.at &&
    plain &&
    root.lang === (language || "en") &&
    localStorage.getItem("aidbridge-auth") === null;
  if (stands) root.dataset.landing = at;
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
  var files = (words[language] || []).concat((at === told.at && told.files) || []);
  if (at === "ask") {
    preload("preload", "/functions/v1/get-categories");
    // the first question comes before the web font: see src/lib/fonts.ts
    if (stands && localStorage.getItem("aidbridge-fonts") === null) root.dataset.fonts = "later";
    if (!stands) files = files.concat(told.form || []);
  }
  for (var i = 0; i < files.length; i += 1) preload("modulepreload", files[i]);
} catch {
  // storage is closed to us: follow the system
}
