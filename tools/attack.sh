#!/usr/bin/env bash
# Runs the whole attack suite and writes its report, or proves that its tests detect missing guards and writes that below the
# report's figures.
#   tools/attack.sh [SEED] [--write FILE]      tools/attack.sh --prove [--write FILE] [GUARD …]
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "${1:-}" = --prove ]; then
  shift
  exec node tools/mutants.mjs "$@"
fi
seed=7 write=''
while [ $# -gt 0 ]; do
  case "$1" in
    --write) write=${2:?a file}; shift 2 ;;
    *) seed=$1; shift ;;
  esac
done
lines=$(mktemp)
trap 'rm -f "$lines"' EXIT
# The suite, and other tests with attacks.
tests=(attack:: api::attacks api::storage_attacks realtime::hostile rest_isolation:: auth::enumeration auth::guesses auth::keys auth::links auth::logs auth::outbound auth::sessions auth::tokens)
rounds=${ATTACK_ROUNDS:-5000}
ATTACK_SEED=$seed ATTACK_ROUNDS=$rounds ATTACK_REPORT=$lines \
  cargo test --locked -p ferrobase --test all -- "${tests[@]}" | tee "$lines.log"
ran=$(sed -n 's/^test result: ok\. \([0-9]*\) passed.*/\1/p' "$lines.log" | tail -1)
rm -f "$lines.log"
[ -n "$ran" ] || { echo "attack.sh: no test ran" >&2; exit 1; }
report() {
  echo "# Attacks"
  echo
  echo "\`just attack $seed\`, $(date -u +%Y-%m-%d): $ran tests pass: those of \`server/tests/attack\` and other tests with attacks. Every payload is"
  echo "sent to every input, with $rounds random combinations. The suite tried:"
  echo
  echo "| what | how often | outcome |"
  echo "|---|---|---|"
  sort "$lines"
}
if [ -n "$write" ]; then
  # What was found and proven stands below the figures, under headings of its own.
  rest=$([ ! -e "$write" ] || sed -n '/^## /,$p' "$write")
  { report; [ -z "$rest" ] || printf '\n%s\n' "$rest"; } >"$lines.report"
  mv "$lines.report" "$write"
else
  report
fi
