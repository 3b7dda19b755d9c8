#!/usr/bin/env bash
# Builds the server with the web app inside, and what both need: tools/build.sh quick|release  →  target/<profile>/ferrobase
set -euo pipefail
cd "$(dirname "$0")/.."
profile=${1:?which profile: quick or release}

web() {
  tools/install.sh postgres
  tools/install.sh frontend
  tools/build-web.sh
}
# What `just up` leaves out because it takes long to compile: OpenTelemetry, and AVIF's encoder, which only releases have.
features=()
case $profile in
  quick) features=(--no-default-features) ;;
  release) features=(--features avif) ;;
esac
server() { cargo build --profile "$profile" --locked --bin ferrobase ${features[@]+"${features[@]}"}; }

mkdir -p target
if [ -e "target/$profile/ferrobase" ] || ! command -v flock >/dev/null; then
  web
  server
  exit
fi
# The first time everything is compiled: the libraries need no web app, so both go side by side. The server's build script
# waits for this lock before the server itself, which holds the web app, is compiled.
lock=$PWD/target/web-build.lock
exec 8>"$lock"
flock 8
web &
web=$!
exec 8>&-
code=0
FERROBASE_WEB_LOCK=$lock server || code=$?
wait "$web" || code=$?
exit "$code"
