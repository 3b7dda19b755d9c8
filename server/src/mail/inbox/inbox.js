// Shows new mail without a reload by hand.
const newest = document.body.dataset.newest;

async function look() {
  try {
    const response = await fetch("/api/messages?limit=1");
    const [latest] = await response.json();
    if ((latest?.id ?? "") !== newest) location.reload();
  } catch {
    // The server is being restarted; the next look finds it again.
  }
}

setInterval(() => document.visibilityState === "visible" && look(), 2000);
