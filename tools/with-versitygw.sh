#!/usr/bin/env bash
# Runs a command with a third-party S3 server, versitygw, with a bucket `files`; stopped and removed afterwards.
#   tools/with-versitygw.sh COMMAND…
# The command sees TEST_S3_ENDPOINT, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY.
set -euo pipefail
cd "$(dirname "$0")/.."
program=$(tools/go-program.sh versitygw github.com/versity/versitygw/cmd/versitygw@v1.8.0)
export AWS_ACCESS_KEY_ID=${AWS_ACCESS_KEY_ID:-of-tests} AWS_SECRET_ACCESS_KEY=${AWS_SECRET_ACCESS_KEY:-of-tests-alone}
data=$(mktemp -d -t ferrobase-versitygw-XXXXXX)
server=''
stop() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  [ -z "$server" ] || wait "$server" 2>/dev/null || true
  rm -rf "$data"
}
trap stop EXIT
node tools/free-ports.mjs 1 >"$data/port" &
ports=$!
until [ -s "$data/port" ]; do sleep 0.05; done
port=$(tr -d ' \n' <"$data/port")
kill "$ports" && wait "$ports" 2>/dev/null || true
mkdir -p "$data/store/files"
ROOT_ACCESS_KEY=$AWS_ACCESS_KEY_ID ROOT_SECRET_KEY=$AWS_SECRET_ACCESS_KEY \
  "$program" --port "127.0.0.1:$port" --region us-east-1 posix "$data/store" >"$data/log" 2>&1 &
server=$!
export TEST_S3_ENDPOINT=http://127.0.0.1:$port
"$@"
