#!/usr/bin/env bash
# Runs a command against a temporary development server: fresh data folder, free ports, stopped afterwards.
#   tools/with-server.sh COMMAND…      (FERROBASE_BIN names the binary)
# The command sees BASE_URL, SUPABASE_URL, INBOX_URL, DATABASE_URL_OF_TEST, SERVER_PID.
set -euo pipefail
cd "$(dirname "$0")/.."

binary=${FERROBASE_BIN:-target/debug/ferrobase}
data=$(mktemp -d -t ferrobase-test-XXXXXX)
chmod 755 "$data"
ports='' server=''
stop() {
  [ -z "$server" ] || kill -TERM "$server" 2>/dev/null || true
  [ -z "$server" ] || wait "$server" 2>/dev/null || true
  [ -z "$ports" ] || kill -TERM "$ports" 2>/dev/null || true
  rm -rf "$data"
}
trap stop EXIT
node tools/free-ports.mjs 4 >"$data/ports" &
ports=$!
until [ -s "$data/ports" ]; do kill -0 "$ports" || exit 1; sleep 0.05; done
read -r api db inbox admin <"$data/ports"
export FERROBASE_DEV=true FERROBASE_DATA_DIR=$data FERROBASE_DB_PORT=$db
export FERROBASE_LISTEN=127.0.0.1:$api FERROBASE_INBOX_LISTEN=127.0.0.1:$inbox FERROBASE_ADMIN_LISTEN=127.0.0.1:$admin
export RUST_LOG=${RUST_LOG:-warn}

"$binary" serve >"$data/server.log" 2>&1 &
server=$!

node tools/wait-for.mjs "http://127.0.0.1:$api/health" "$server" || { tail -50 "$data/server.log" >&2; exit 1; }

export BASE_URL=http://127.0.0.1:$api SUPABASE_URL=http://127.0.0.1:$api INBOX_URL=http://127.0.0.1:$inbox
export SERVER_PID=$server
export DATABASE_URL_OF_TEST=postgresql://postgres:postgres@127.0.0.1:$db/postgres
"$@" || { code=$?; echo "--- last lines of the server's log" >&2; tail -30 "$data/server.log" >&2; exit $code; }
