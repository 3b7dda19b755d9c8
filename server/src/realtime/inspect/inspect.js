// Brings what has changed into the page every second. The server has escaped all of it.
let seen = null;

async function look() {
  let text;
  try {
    const response = await fetch(location.href, { credentials: "same-origin" });
    if (!response.ok) return;
    text = await response.text();
  } catch {
    return; // The server is being restarted; the next look finds it again.
  }
  if (text === seen || getSelection()?.toString()) return; // What is being copied stays.
  seen = text;
  const next = new DOMParser().parseFromString(text, "text/html");
  for (const part of document.querySelectorAll("[data-live]")) {
    const other = next.getElementById(part.id);
    if (other && other.innerHTML !== part.innerHTML && !part.contains(document.activeElement)) {
      part.replaceChildren(...other.childNodes);
    }
  }
}

setInterval(() => document.visibilityState === "visible" && look(), 1000);
