#!/usr/bin/env bash
# Every test, suite by suite; ends with what failed and how many ran. `tools/test.sh SUITE…` runs just those:
#   rust   unit and API tests of the server      compat   supabase-js against a running server
#   web    unit tests and types of the web app   e2e      journeys in a real browser
set -euo pipefail
cd "$(dirname "$0")/.."
suites=("$@")
[ ${#suites[@]} -gt 0 ] || suites=(rust web compat e2e)

for tool in cargo node npm cc; do
  command -v "$tool" >/dev/null || { echo "test.sh: '$tool' is missing (needed: cargo, Node.js 20.19 or newer with npm, a C compiler)" >&2; exit 1; }
done

logs=target/test-logs
mkdir -p "$logs"
passed=0 failed=0 summary=() broken=()

# run NAME PATTERN COMMAND…: runs a suite, counts by the runner's own closing lines.
run() {
  local name=$1; shift
  echo "== $name"
  local started=$SECONDS code=0
  "$@" 2>&1 | tee "$logs/$name.log" || code=$?
  local counts ok bad
  counts=$(node tools/count-tests.mjs "$logs/$name.log")
  ok=${counts% *} bad=${counts#* }
  if [ "$code" -ne 0 ] && [ "$bad" -eq 0 ]; then bad=1; fi
  if [ "$ok" -eq 0 ] && [ "$bad" -eq 0 ]; then echo "test.sh: the suite $name ran no test" >&2; bad=1; fi
  [ "$bad" -eq 0 ] || broken+=("$name")
  passed=$((passed + ok)) failed=$((failed + bad))
  summary+=("$(printf '%-8s %5d passed %3d failed %5d s' "$name" "$ok" "$bad" $((SECONDS - started)))")
}

web_suite() { (cd frontend && npm run --silent check && npm run --silent test); }
compat_suite() (
  # The server offers what the journeys need.
  set -a
  . supabase-compat-tests/server.env
  set +a
  tools/with-server.sh bash -c 'set -e
    target/debug/ferrobase migrate --dir supabase-compat-tests/supabase/migrations
    cd supabase-compat-tests && npm run --silent check && npm run --silent test'
)
# Desk and phone at once, each with a server of its own, so that both meet the demo data as it was seeded. Most of a
# journey is waiting: two of them take one core.
e2e_suite() {
  CHROMIUM_PATH=$(tools/chromium.sh)
  export CHROMIUM_PATH
  local code=0 desk
  journeys desk &
  desk=$!
  journeys phone >"$logs/phone.log" 2>&1 || code=1
  wait "$desk" || code=1
  cat "$logs/phone.log"
  return $code
}
journeys() {
  PROJECT=$1 tools/with-server.sh bash -c \
    'cd frontend && npx playwright test --reporter=list --project="$PROJECT" --output="test-results/$PROJECT"'
}

tools/install.sh postgres
tools/install.sh frontend
for suite in "${suites[@]}"; do
  case "$suite" in
    rust) run rust cargo test --locked --workspace --no-fail-fast ;;
    web) run web web_suite ;;
    compat)
      tools/install.sh compat
      cargo build --locked --bin ferrobase
      run compat compat_suite ;;
    e2e)
      tools/build-web.sh
      cargo build --locked --bin ferrobase
      run e2e e2e_suite ;;
    *) echo "test.sh: there is no suite named '$suite'" >&2; exit 2 ;;
  esac
done

for name in ${broken[@]+"${broken[@]}"}; do
  echo
  echo "== what failed in $name"
  node tools/failures.mjs "$logs/$name.log"
done
echo
printf '%s\n' "${summary[@]}"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
