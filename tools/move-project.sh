#!/usr/bin/env bash
# Moves a large project from one server to another by `ferrobase import`, as server/tests/project_import.rs does with a small one,
# and uses every session, password and file where they arrive.
#   tools/move-project.sh [--people N] [--files N] [--write FILE]
set -euo pipefail
cd "$(dirname "$0")/.."
people=10000 files=1000 write=''
while [ $# -gt 0 ]; do
  case "$1" in
    --people) people=${2:?a number}; shift 2 ;;
    --files) files=${2:?a number}; shift 2 ;;
    --write) write=${2:?a file}; shift 2 ;;
    *) echo "move-project.sh: what is '$1'?" >&2; exit 2 ;;
  esac
done
lines=$(mktemp)
trap 'rm -f "$lines"' EXIT
FERROBASE_MOVE_USERS=$people FERROBASE_MOVE_FILES=$files FERROBASE_MOVE_REPORT=$lines \
  cargo test --locked -p ferrobase --test all -- project_import:: --nocapture --test-threads=1
[ -s "$lines" ] || { echo "move-project.sh: nothing was moved (tools/pg-extras.sh client installs pg_dump)" >&2; exit 1; }
report() {
  echo "# Moving a project"
  echo
  echo "\`just move-project\`, $(date -u +%Y-%m-%d), commit $(git rev-parse --short HEAD), debug build, $(nproc) cores, both servers on one machine."
  echo
  cat "$lines"
}
if [ -n "$write" ]; then report >"$write"; fi
report
