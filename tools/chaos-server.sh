#!/usr/bin/env bash
# Faults under a server with concurrent writes (server/tests/chaos), for a number of rounds, with a report.
#   tools/chaos-server.sh ROUNDS [--write FILE] [--seed N]
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:?how many rounds}
shift
seed=7 write=''
while [ $# -gt 0 ]; do
  case "$1" in
    --write) write=${2:?a file}; shift 2 ;;
    --seed) seed=${2:?a number}; shift 2 ;;
    *) echo "chaos-server.sh: what is '$1'?" >&2; exit 2 ;;
  esac
done
lines=$(mktemp)
trap 'rm -f "$lines"' EXIT
CHAOS_ROUNDS=$rounds CHAOS_SEED=$seed CHAOS_REPORT=$lines \
  cargo test --locked -p ferrobase --test all -- chaos:: --nocapture --test-threads=1
report() {
  echo "# The server under faults"
  echo
  echo "\`just chaos-server $rounds --seed $seed\`, $(date -u +%Y-%m-%d). After every fault, each key of each writer had the value acknowledged last, or"
  echo "one that a lost answer may have left. Everybody who had signed up could sign in. No file was torn or without its row."
  echo
  cat "$lines"
}
if [ -n "$write" ]; then report >"$write"; fi
