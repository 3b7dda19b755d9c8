#!/usr/bin/env bash
# Installs what a recipe needs inside the checkout, pinned by lock files; quick when nothing changed.
#   tools/install.sh postgres|postgres-former|web|frontend|compat|deno|diff
set -euo pipefail
cd "$(dirname "$0")/.."

arguments=() stamp=.installed
case "${1:?which part: postgres, postgres-former, web, frontend, compat, deno or diff}" in
  postgres) folder=tools/postgres ;;
  # Of the major version before, for the tests of upgrades.
  postgres-former) folder=tools/postgres-former ;;
  # What builds the web app; `frontend` has what tests it besides.
  web) folder=frontend arguments=(--omit=dev) stamp=.installed-web ;;
  frontend) folder=frontend ;;
  compat) folder=supabase-compat-tests ;;
  deno) folder=tools/deno ;;
  diff) folder=tools/diff ;;
  *) echo "install.sh: there is no part named '$1'" >&2; exit 2 ;;
esac

for tool in node npm; do
  command -v "$tool" >/dev/null || { echo "install.sh: '$tool' is missing: install Node.js 20.19 or newer" >&2; exit 1; }
done

modules=$folder/node_modules
# current STAMP: whether what it stands for is installed as the lock file has it.
current() { [ -e "$modules/$1" ] && [ ! "$folder/package-lock.json" -nt "$modules/$1" ]; }
if ! current .installed && ! current "$stamp"; then
  echo "Installing packages in $folder"
  (cd "$folder" && npm ci ${arguments[@]+"${arguments[@]}"} --no-fund --no-audit --loglevel=error)
  touch "$modules/$stamp"
fi
