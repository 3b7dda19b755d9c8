#!/usr/bin/env bash
# Builds frontend/dist unless it is newer than all its sources.
set -euo pipefail
cd "$(dirname "$0")/../frontend"

newest=$(find . -path ./node_modules -prune -o -path ./dist -prune -o -path ./test-results -prune \
  -o -path ./e2e -prune -o -type f -newer dist/index.html -print 2>/dev/null | head -n 1 || true)
if [ ! -e dist/index.html ] || [ -n "$newest" ]; then
  npm run build
fi
