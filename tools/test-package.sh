#!/usr/bin/env bash
# Installs the output of `just package` as users would, in empty folders, and runs it.
set -euo pipefail
cd "$(dirname "$0")/.."
dist=$PWD/dist
work=$(mktemp -d -t ferrobase-package-XXXXXX)
chmod 755 "$work"
server='' ports=''
stop() {
  [ -z "$server" ] || { kill -TERM "$server" 2>/dev/null && wait "$server"; } || true
  server=''
}
cleanup() {
  stop
  [ -z "$ports" ] || kill "$ports" 2>/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT
fail() { echo "test-package: $1" >&2; [ ! -e "$work/log" ] || tail -20 "$work/log" >&2; exit 1; }
passed=0
ok() { passed=$((passed + 1)); echo "ok: $1"; }

node tools/free-ports.mjs 4 >"$work/ports" &
ports=$!
until [ -s "$work/ports" ]; do kill -0 "$ports" || exit 1; sleep 0.05; done
read -r api db inbox admin <"$work/ports"
export FERROBASE_DEV=true RUST_LOG=warn FERROBASE_DB_PORT=$db FERROBASE_LISTEN=127.0.0.1:$api
export FERROBASE_INBOX_LISTEN=127.0.0.1:$inbox FERROBASE_ADMIN_LISTEN=127.0.0.1:$admin
# The key of `supabase start`, the same on every machine.
anon=eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzdXBhYmFzZS1kZW1vIiwicm9sZSI6ImFub24iLCJleHAiOjE5ODM4MTI5OTZ9.CRXP1A7WOeoJeXxjNni43kdQwgnWNReilDMblYTn_I0

# first_row FOLDER COMMAND…: serves in the folder until the first row, which may take ten seconds.
first_row() {
  local folder=$1 started=$(date +%s%N) rows=''; shift
  (cd "$folder" && exec "$@" serve) >"$work/log" 2>&1 &
  server=$!
  until rows=$(curl -sf "http://127.0.0.1:$api/rest/v1/denial_reasons?select=code&limit=1" -H "apikey: $anon"); do
    kill -0 "$server" 2>/dev/null || fail "the server ended"
    [ $(($(date +%s%N) - started)) -lt 120000000000 ] || fail "no row within two minutes"
    sleep 0.05
  done
  took=$((($(date +%s%N) - started) / 1000000))
  case $rows in '[{"code":'*) ;; *) fail "not a row: $rows" ;; esac
  local page=$(curl -sf "http://127.0.0.1:$api/")
  [[ $page == *'<title>'* ]] || fail "there is no web app inside"
  stop
  ! curl -s -o /dev/null "http://127.0.0.1:$api/" || fail "the server goes on after it was told to stop"
}

mkdir "$work/npm"
(cd "$work/npm" && npm init -y >/dev/null && npm install --no-fund --no-audit --loglevel=error "$dist"/ferrobase-linux-x64-*.tgz "$dist"/ferrobase-[0-9]*.tgz)
# Without npx, which does not forward signals; Ctrl-C in a terminal reaches all of them.
first_row "$work/npm" "$work/npm/node_modules/.bin/ferrobase"
ok "ferrobase serve from npm in an empty folder: the first row after $took ms"
[ "$took" -le "${FIRST_ROW_MS:-10000}" ] || fail "more than ten seconds"
(cd "$work/npm" && ! npx ferrobase nonsense 2>/dev/null && npx ferrobase --version >/dev/null) || fail "an exit code is lost"
ok "npx hands on exit codes"
rm -rf "$work/npm/node_modules/@ferrobase"
told=$("$work/npm/node_modules/.bin/ferrobase" --version 2>&1) && fail "a missing platform goes unnoticed"
[ "$(wc -l <<<"$told")" = 1 ] && grep -q '^ferrobase: there is no package for ' <<<"$told" || fail "told: $told"
ok "without a package for the platform one line says what to do"

mkdir "$work/tar"
tar -C "$work/tar" --strip-components=1 -xzf "$dist"/ferrobase-*-linux-x64.tar.gz
mkdir "$work/tar/data"
first_row "$work/tar/data" "$work/tar/ferrobase"
ok "the archive: the first row after $took ms"

grep -Eq 'Depends: libc6 \(>= 2\.[0-9]+\)' <<<"$(dpkg-deb --info "$dist"/ferrobase_*.deb)" || fail "the Debian package names no glibc"
mkdir -p "$work/deb/data"
dpkg-deb --extract "$dist"/ferrobase_*.deb "$work/deb"
chmod 755 "$work/deb"
first_row "$work/deb/data" "$work/deb/usr/bin/ferrobase"
ok "the Debian package: the first row after $took ms"

# The image's steps without Docker: the copied files exist, and its scripts create keys and serve with them.
image=$work/image
mkdir -p "$image/bin" "$image/secrets" "$image/data"
for dockerfile in Dockerfile "$dist/container/Dockerfile"; do
  context=$(dirname "$dockerfile")
  while read -r line; do
    for source in $(sed -E 's/^COPY( --chmod=[0-9]+)?//; s/ [^ ]+$//' <<<"$line"); do
      [ -e "$context/$source" ] || fail "$dockerfile copies $source, which is not there"
    done
  done < <(grep '^COPY' "$dockerfile" | grep -v -- '--from=')
done
ok "what the Dockerfiles copy is there"
cp "$dist/container/ferrobase" "$image/bin/"
for script in make-keys.sh serve.sh; do
  sed "s,/secrets,$image/secrets,g" "$dist/container/docker/$script" >"$image/bin/$script"
  chmod 755 "$image/bin/$script"
done
(
  unset FERROBASE_DEV
  export PATH=$image/bin:$PATH
  make-keys.sh >/dev/null
  before=$(cat "$image/secrets/keys.env")
  make-keys.sh
  [ "$before" = "$(cat "$image/secrets/keys.env")" ] || { echo "the keys changed" >&2; exit 1; }
  [ -s "$image/secrets/postgres_password" ]
  POSTGRES_HOST=127.0.0.1 serve.sh keys show | grep -q ANON_KEY
) || fail "the image's scripts do not work"
ok "the image's scripts make keys once and serve.sh knows them"

echo "$passed passed, 0 failed"
