#!/usr/bin/env bash
# Installs what a recipe needs inside the checkout, pinned by lock files; quick when nothing changed.
#   tools/install.sh postgres|postgres-former|frontend|compat|deno|diff
set -euo pipefail
cd "$(dirname "$0")/.."

case "${1:?which part: postgres, postgres-former, frontend, compat, deno or diff}" in
  postgres) folder=tools/postgres ;;
  # Of the major version before, for the tests of upgrades.
  postgres-former) folder=tools/postgres-former ;;
  frontend) folder=frontend ;;
  compat) folder=supabase-compat-tests ;;
  deno) folder=tools/deno ;;
  diff) folder=tools/diff ;;
  *) echo "install.sh: there is no part named '$1'" >&2; exit 2 ;;
esac

for tool in node npm; do
  command -v "$tool" >/dev/null || { echo "install.sh: '$tool' is missing: install Node.js 20.19 or newer" >&2; exit 1; }
done

stamp="$folder/node_modules/.installed"
if [ ! -e "$stamp" ] || [ "$folder/package-lock.json" -nt "$stamp" ]; then
  echo "Installing packages in $folder"
  (cd "$folder" && npm ci --no-fund --no-audit --loglevel=error)
  touch "$stamp"
fi
