#!/usr/bin/env bash
# Deletes the development database, also if the server, started as root, had to move it (see server/src/embedded_pg).
#   tools/db-reset.sh      (FERROBASE_DATA_DIR names another folder)
set -euo pipefail
cd "$(dirname "$0")/.."

data=${FERROBASE_DATA_DIR:-.ferrobase}
moved_to=${FERROBASE_MOVED_TO:-/var/lib/ferrobase}
rm -rf "$data/db"
for name in "$data" "$(realpath -m "$data")"; do
  rm -rf "$moved_to/$(printf %s "$name" | sha256sum | cut -c1-12)"
done
