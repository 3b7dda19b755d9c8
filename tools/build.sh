#!/usr/bin/env bash
# Builds the server with the embedded web app, and their dependencies:
#   tools/build.sh quick|release  →  target/<profile>/ferrobase
set -euo pipefail
cd "$(dirname "$0")/.."
profile=${1:?which profile: quick or release}

web() {
  tools/install.sh postgres
  tools/install.sh web
  tools/build-web.sh
}
# Features that only releases have because they take long to compile: image transformation, HTTPS, OpenTelemetry, NATS.
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
# On the first build the libraries do not need the web app, so both are built in parallel. The server's build script
# waits for this lock before the server itself, which embeds the web app, is compiled.
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
