#!/usr/bin/env bash
# Every test, suite by suite; ends with what failed and how many ran. `tools/test.sh SUITE…` runs just those:
#   rust   unit and API tests of the server      compat   supabase-js against a running server
#   web    unit tests and types of the web app   e2e      journeys in a real browser
# Suites run in parallel where one mostly waits: web during the Rust build, compat during the Rust tests.
set -euo pipefail
cd "$(dirname "$0")/.."
suites=("$@")
[ ${#suites[@]} -gt 0 ] || suites=(rust web compat e2e)

for tool in cargo node npm cc; do
  command -v "$tool" >/dev/null || { echo "test.sh: '$tool' is missing (needed: cargo, Node.js 20.19 or newer with npm, a C compiler)" >&2; exit 1; }
done
for suite in "${suites[@]}"; do
  case "$suite" in rust | web | compat | e2e) ;; *) echo "test.sh: there is no suite named '$suite'" >&2; exit 2 ;; esac
done
wanted() { [[ " ${suites[*]} " == *" $1 "* ]]; }

logs=target/test-logs
rm -rf "$logs"
mkdir -p "$logs"
passed=0 failed=0 summary=() broken=()

# Seconds of processor time that this machine's cores have spent since it started, other programs included.
processor_time() {
  if [ -r /proc/stat ]; then awk '/^cpu /{ print int(($2 + $3 + $4 + $7 + $8 + $9) / 100) }' /proc/stat; else echo 0; fi
}
phases=() phase_begun=$SECONDS phase_cpu=$(processor_time)
# end_phase NAME: notes how long it took, and how much processor time: the time it would take if every core were always busy.
end_phase() {
  local cpu cores
  cpu=$(processor_time)
  cores=$(node -p 'os.availableParallelism()')
  phases+=("$(printf '%-16s %5d s; processor time %5d s, shared by %d cores %5d s' \
    "$1" $((SECONDS - phase_begun)) $((cpu - phase_cpu)) "$cores" $(((cpu - phase_cpu) / cores)))")
  phase_begun=$SECONDS phase_cpu=$cpu
}
# From nothing, a sixth of what compiling our crates takes is for building again. Where somebody does, that goes on.
[ -n "$(ls -A target/debug/incremental 2>/dev/null)" ] || export CARGO_INCREMENTAL=${CARGO_INCREMENTAL:-0}

# Thousands of databases and folders are made and removed again: in memory that costs no disk. On Linux with plenty of both;
# `TMPDIR` names another place.
memory=''
plenty_of_memory() {
  [ -z "${TMPDIR:-}" ] && [ -r /proc/meminfo ] && [ -w /dev/shm ] &&
    [ "$(awk '/^MemAvailable/{ print int($2 / 1024 / 1024) }' /proc/meminfo)" -ge 12 ] &&
    [ "$(df -Pk /dev/shm | awk 'END{ print int($4 / 1024 / 1024) }')" -ge 6 ]
}
if plenty_of_memory; then
  memory=$(mktemp -d /dev/shm/fb.XXXXXX)
  chmod 1777 "$memory"
fi
# Ends running jobs with this script.
trap 'jobs -p | xargs -r kill 2>/dev/null || true; [ -z "$memory" ] || rm -rf "$memory"' EXIT

# record NAME COMMAND…: runs it with its output in a log; stores exit code and seconds beside it.
record() {
  local name=$1 started=$SECONDS code=0; shift
  "$@" >"$logs/$name.log" 2>&1 || code=$?
  echo "$code $((SECONDS - started))" >"$logs/$name.end"
}
# show NAME: when it has ended, prints its log and its counts from the runner's last lines.
show() {
  local name=$1 code seconds counts ok bad
  read -r code seconds <"$logs/$name.end"
  echo "== $name"
  cat "$logs/$name.log"
  counts=$(node tools/count-tests.mjs "$logs/$name.log")
  ok=${counts% *} bad=${counts#* }
  if [ "$code" -ne 0 ] && [ "$bad" -eq 0 ]; then bad=1; fi
  if [ "$ok" -eq 0 ] && [ "$bad" -eq 0 ]; then echo "test.sh: the suite $name ran no test" >&2; bad=1; fi
  [ "$bad" -eq 0 ] || broken+=("$name")
  passed=$((passed + ok)) failed=$((failed + bad))
  summary+=("$(printf '%-8s %5d passed %3d failed %5d s' "$name" "$ok" "$bad" "$seconds")")
}

# Tests mostly wait for a database, a server or a clock.
threads=$((2 * $(node -p 'os.availableParallelism()')))
rust_suite() { TEST_CLUSTERS=${memory:-${TMPDIR:-/tmp}} RUST_TEST_THREADS=${RUST_TEST_THREADS:-$threads} cargo test --locked --workspace --lib --test all --no-fail-fast; }
web_suite() { (cd frontend && npm run --silent check && npm run --silent test); }
compat_suite() (
  # Enables what the journeys need.
  set -a
  . supabase-compat-tests/server.env
  set +a
  tools/with-server.sh bash -c 'set -e
    target/debug/ferrobase migrate --dir supabase-compat-tests/supabase/migrations
    cd supabase-compat-tests && npm run --silent check && COMPAT_COMPLETE=1 npm run --silent test' &&
    (cd supabase-compat-tests && npm run --silent projects)
)
e2e_suite() {
  CHROMIUM_PATH=$(tools/chromium.sh)
  export CHROMIUM_PATH
  (cd frontend && TMPDIR=${memory:-${TMPDIR:-/tmp}} npx playwright test --reporter=list)
}

# Packages first, then what depends on them, all during the Rust build.
packages() {
  tools/install.sh postgres
  tools/install.sh deno
  tools/install.sh frontend
  if wanted rust; then
    tools/install.sh diff
    # If they are unavailable, the tests that need them say so.
    tools/install.sh postgres-former || true
    tools/pg-extras.sh client || true
    tools/pg-extras.sh pgtap || true
    tools/pg-extras.sh check || true
  fi
  if wanted compat; then tools/install.sh compat; fi
  touch "$logs/installed"
  if wanted e2e; then
    tools/build-web.sh
    tools/chromium.sh
  fi
  if wanted web; then record web web_suite; fi
}
programs() {
  if wanted rust; then
    cargo test --locked --workspace --lib --test all --no-run
  elif wanted compat || wanted e2e; then
    cargo build --locked --bin ferrobase
  fi
}

echo "== building"
packages >"$logs/packages.log" 2>&1 &
packages=$!
code=0
programs || code=$?
if [ "$code" -ne 0 ]; then
  echo "test.sh: the Rust build failed" >&2
  exit "$code"
fi
until [ -e "$logs/installed" ]; do
  if ! kill -0 "$packages" 2>/dev/null; then break; fi
  sleep 0.2
done
if [ ! -e "$logs/installed" ]; then
  cat "$logs/packages.log" >&2
  echo "test.sh: the packages could not be installed" >&2
  exit 1
fi

end_phase building
echo "== testing"
running=()
for suite in rust compat; do
  if wanted "$suite"; then
    record "$suite" "${suite}_suite" &
    running+=($!)
  fi
done
code=0
wait "$packages" || code=$?
if [ "$code" -ne 0 ]; then
  cat "$logs/packages.log" >&2
  echo "test.sh: the web app could not be built" >&2
  exit 1
fi
if wanted web; then show web; fi
for job in ${running[@]+"${running[@]}"}; do wait "$job"; done
for suite in rust compat; do
  if wanted "$suite"; then show "$suite"; fi
done
if wanted rust || wanted compat || wanted web; then end_phase "all but e2e"; fi
# Runs alone, because the browser keeps every core busy.
if wanted e2e; then
  record e2e e2e_suite
  show e2e
  end_phase e2e
fi

for name in ${broken[@]+"${broken[@]}"}; do
  echo
  echo "== what failed in $name"
  node tools/failures.mjs "$logs/$name.log"
done
echo
printf '%s\n' "${phases[@]}" "${summary[@]}"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
