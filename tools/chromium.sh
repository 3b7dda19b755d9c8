#!/usr/bin/env bash
# Prints the path of a Chromium for the browser tests, installing one if there is none.
set -euo pipefail
cd "$(dirname "$0")/../frontend"

of_playwright() {
  node -e 'const p = require("playwright-core").chromium.executablePath(); if (p && require("fs").existsSync(p)) console.log(p)' 2>/dev/null || true
}
first_of() {
  for candidate in "${CHROMIUM_PATH:-}" "$(of_playwright)" /usr/bin/chromium /usr/bin/chromium-browser /usr/bin/google-chrome; do
    if [ -n "$candidate" ] && [ -x "$candidate" ]; then echo "$candidate"; return 0; fi
  done
  return 1
}

if first_of; then exit 0; fi
echo "Installing Chromium for the browser tests" >&2
npx playwright install chromium >&2 2>&1 || true
if first_of; then exit 0; fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium; } >&2 || true
  if first_of; then exit 0; fi
fi
echo "chromium.sh: no Chromium found: install one and set CHROMIUM_PATH to it" >&2
exit 1
