#!/usr/bin/env bash
# Third-party programs against a development server, including behaviour that their documentation does not mention.
#   tools/test-tools.sh [NAME…]      names: boto3 aws-cli supabase-py rclone tus uppy versitygw nats testing apps contract
#                                    supabase-cli postgres postgres-meta prometheus unit instances pgbouncer failover acme; without a name all of them
#                                    containers: only by name, because it needs a running Docker Engine and builds a release
# Public apps (apps) are fetched from their repositories, see tools/clients/apps.mjs.
# Downloaded into a cache (TOOLS_DIR, default ~/.cache/ferrobase-tools): from PyPI and npm; versitygw, Pebble and a missing
# rclone through the Go proxy; nats-server from Debian unless it is on PATH or NATS_SERVER names it.
set -euo pipefail
cd "$(dirname "$0")/.."

dir=${TOOLS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/ferrobase-tools}
[ $# -gt 0 ] || set -- boto3 aws-cli supabase-py rclone tus uppy versitygw nats testing apps contract supabase-cli postgres postgres-meta prometheus unit instances pgbouncer failover acme

# environment NAME PACKAGE…: a virtual environment with these packages.
environment() {
  local name=$1; shift
  if [ ! -e "$dir/$name/ready" ]; then
    python3 -m venv "$dir/$name"
    "$dir/$name/bin/pip" install --quiet --disable-pip-version-check "$@"
    touch "$dir/$name/ready"
  fi
}

# debian PACKAGE…: unpacks these packages into a folder and prints it, because installing needs root.
debian() {
  local folder=$dir/debian/$1
  if [ ! -e "$folder/.ready" ]; then
    command -v apt-get >/dev/null || { echo "test-tools: $1 is missing, and it is fetched on Debian only" >&2; exit 2; }
    mkdir -p "$folder"
    (cd "$folder" && apt-get download "$@" >/dev/null && for package in ./*.deb; do dpkg-deb -x "$package" .; done && rm ./*.deb)
    touch "$folder/.ready"
  fi
  echo "$folder"
}

# promtool checks the alerts, runs their tests, and parses the dashboard's queries as rule expressions.
prometheus() {
  local promtool
  promtool=$(command -v promtool || echo "$(debian prometheus)/usr/bin/promtool")
  "$promtool" check config packaging/monitoring/prometheus.yml
  "$promtool" test rules packaging/monitoring/alerts.test.yml
  node tools/dashboard-rules.mjs packaging/monitoring/grafana-dashboard.json >"$dir/dashboard-rules.yml"
  "$promtool" check rules "$dir/dashboard-rules.yml"
}

# debian_program FOLDER PROGRAM: prints a script that runs a program in such a folder with its libraries. Servers drop
# root and then cannot read a home directory.
debian_program() {
  local copy=/tmp/ferrobase-tools-$(id -u)/$(basename "$1")
  [ -e "$copy" ] || { mkdir -p "$(dirname "$copy")"; cp -r "$1" "$copy"; chmod -R a+rX "$(dirname "$copy")"; }
  printf '#!/bin/sh\nLD_LIBRARY_PATH=%s/usr/lib/%s exec %s/%s "$@"\n' "$copy" "$(uname -m)-linux-gnu" "$copy" "$2" >"$copy/run"
  chmod 755 "$copy/run"
  echo "$copy/run"
}

# Instances behind haproxy and nginx with the files in packaging/: shared state, and a rolling restart under load.
instances() {
  local binary=${FERROBASE_BIN:-target/debug/ferrobase} haproxy nginx
  haproxy=$(command -v haproxy || debian_program "$(debian haproxy liblua5.3-0 libopentracing-c-wrapper0 libopentracing1)" usr/sbin/haproxy)
  nginx=$(command -v nginx || debian_program "$(debian nginx)" usr/sbin/nginx)
  tools/with-server.sh node --experimental-websocket tools/clients/instances.mjs "$binary" haproxy "$haproxy" 2
  tools/with-server.sh node --experimental-websocket tools/clients/instances.mjs "$binary" nginx "$nginx" 3
}

# Requests through PgBouncer in transaction mode.
pgbouncer() {
  local program
  # Not the function of this name.
  program=$(type -P pgbouncer || debian_program "$(debian pgbouncer libevent-2.1-7 libc-ares2)" usr/sbin/pgbouncer)
  tools/with-server.sh node --experimental-websocket tools/clients/pgbouncer.mjs "${FERROBASE_BIN:-target/debug/ferrobase}" "$program"
}

# PostgreSQL under Patroni, whose primary is killed. POSTGRES_BIN is the folder of a PostgreSQL that everybody may run,
# by default Debian's. Patroni's modules are for Debian's own Python.
failover() {
  local folder postgres
  folder=$(debian patroni etcd-server python3-etcd python3-urllib3 python3-psycopg2 python3-click python3-yaml python3-dateutil \
    python3-prettytable python3-psutil python3-dnspython python3-wcwidth python3-six python3-cdiff)
  folder=$(dirname "$(debian_program "$folder" usr/bin/patroni)")
  postgres=${POSTGRES_BIN:-$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -1)}
  [ -x "$postgres/postgres" ] || { echo "test-tools: no PostgreSQL server in /usr/lib/postgresql (Debian: apt-get install postgresql); or set POSTGRES_BIN" >&2; exit 2; }
  node tools/clients/failover.mjs "${FERROBASE_BIN:-$PWD/target/debug/ferrobase}" "$folder" "$postgres"
}

# A certificate by ACME from Pebble, which is built through the Go proxy.
acme() {
  local pebble dns version=v2.8.0
  pebble=$(tools/go-program.sh pebble "github.com/letsencrypt/pebble/v2/cmd/pebble@$version")
  dns=$(tools/go-program.sh pebble-challtestsrv "github.com/letsencrypt/pebble/v2/cmd/pebble-challtestsrv@$version")
  tools/clients/acme.sh "${FERROBASE_BIN:-target/debug/ferrobase}" "$pebble" "$dns"
}

# The image and the compose files with a Docker Engine, and with Docker's Compose 2.24 or newer, else Debian's. Without an image
# registry the base images are stand-ins; CONTAINERS_BASES=registry pulls the true ones.
containers() {
  local docker=${DOCKER:-docker} compose version folder=$dir/compose
  "$docker" version >/dev/null || { echo "test-tools: containers needs a running Docker Engine" >&2; exit 2; }
  compose=("$docker" compose)
  # Without Compose the client prints its help.
  version=$("${compose[@]}" version --short 2>/dev/null | grep -Eo '^v?[0-9]+[.][0-9.]+' | tr -d v || true)
  if ! printf '2.24\n%s\n' "$version" | sort -C -V; then
    compose=("$folder/usr/libexec/docker/cli-plugins/docker-compose")
    [ -x "${compose[0]}" ] || mmdebstrap --quiet --variant=extract --include=docker-compose trixie "$folder"
  fi
  node tools/clients/containers.mjs "$dir/containers" "$docker" "${compose[@]}"
}

# A server with its files in a third-party S3 store.
versitygw() {
  tools/with-versitygw.sh cargo test --locked -p ferrobase --test all api::storage_store
}

# Instances of realtime over a real nats-server, which is only unpacked without root.
nats() {
  local program=${NATS_SERVER:-$(command -v nats-server || echo "$dir/nats/usr/sbin/nats-server")}
  if [ ! -x "$program" ]; then
    command -v apt-get >/dev/null || { echo "test-tools: nats-server is missing: put it on PATH or name it in NATS_SERVER" >&2; exit 2; }
    mkdir -p "$dir/nats"
    (cd "$dir/nats" && apt-get download nats-server && dpkg-deb -x nats-server_*.deb .)
  fi
  NATS_SERVER=$program cargo test --locked -p ferrobase --test all real_nats_server -- --ignored
}

# jest and Playwright with the npm package for tests: its examples.
testing() {
  mkdir -p "$dir/testing"
  cp tools/clients/testing/* "$dir/testing/"
  [ -e "$dir/testing/node_modules/jest" ] || npm ci --prefix "$dir/testing" --silent --no-audit --no-fund
  mkdir -p "$dir/testing/node_modules/@ferrobase/testing"
  cp packaging/npm-testing/{package.json,index.*} "$dir/testing/node_modules/@ferrobase/testing/"
  cp -r packaging/npm-testing/examples/. "$dir/testing/"
  local binary=$PWD/target/debug/ferrobase chromium
  chromium=$(tools/chromium.sh)
  (
    export FERROBASE_BINARY=${FERROBASE_BINARY:-$binary} CHROMIUM_PATH=$chromium
    cd "$dir/testing"
    node_modules/.bin/jest --config jest/jest.config.cjs --testTimeout 120000
    node_modules/.bin/playwright test --config playwright/playwright.config.mjs --timeout 120000 --reporter list
  )
}

# Two public apps' own suites, on copies of their projects. APPS names those to run, all if it is not set.
apps() {
  node tools/clients/apps.mjs "${FERROBASE_BIN:-target/debug/ferrobase}" "$(tools/chromium.sh)" "$dir/apps" ${APPS:-}
}

# The contract suite without keys and mailbox, compared with @supabase/lite, and with Supabase Auth itself if SUPABASE_AUTH names
# the program that `go build` makes in a checkout of supabase/auth (the Go proxy does not serve that module).
contract() {
  tools/install.sh compat
  mkdir -p "$dir/lite"
  cp tools/clients/lite/* tools/clients/lite/.npmrc "$dir/lite/"
  if ! cmp -s "$dir/lite/package-lock.json" "$dir/lite/node_modules/.of-lock"; then
    npm ci --prefix "$dir/lite" --silent
    cp "$dir/lite/package-lock.json" "$dir/lite/node_modules/.of-lock"
  fi
  (
    set -a
    . supabase-compat-tests/server.env
    set +a
    tools/with-server.sh tools/clients/contract.sh "$dir/lite/node_modules/.bin/lite" "${SUPABASE_AUTH:-}"
  )
}

# The newest Supabase CLI of version 2 and of version 3.
SUPABASE_CLIS=(2.122.1 3.1.0)

# supabase_program VERSION: prints the path of this CLI.
supabase_program() {
  local folder=$dir/supabase-$1
  [ -e "$folder/node_modules/.bin/supabase" ] || npm install --prefix "$folder" --silent --no-audit --no-fund "supabase@$1" >&2
  echo "$folder/node_modules/.bin/supabase"
}

# Each command of the Supabase CLI that works without Docker.
supabase_cli() {
  local version
  tools/install.sh diff
  [ -x tools/postgres/client/bin/psql ] || tools/pg-extras.sh client
  for version in "${SUPABASE_CLIS[@]}"; do
    node tools/clients/supabase-cli.mjs "$(supabase_program "$version")" "${FERROBASE_BIN:-target/debug/ferrobase}"
  done
}

# psql, pg_dump, pg_restore, Drizzle and Prisma.
postgres() {
  [ -x tools/postgres/client/bin/pg_restore ] || tools/pg-extras.sh client
  mkdir -p "$dir/orm"
  cp tools/clients/orm/* tools/clients/orm/.npmrc "$dir/orm/"
  [ -e "$dir/orm/node_modules/drizzle-kit" ] || npm ci --prefix "$dir/orm" --silent
  tools/clients/postgres.sh "${FERROBASE_BIN:-target/debug/ferrobase}" "$dir/orm"
}

# postgres-meta, which Studio needs, and the types that it and the Supabase CLI print. POSTGRES_META names a checkout of
# supabase/postgres-meta: then its test database is compared as well, and its own suite is run on a bare PostgreSQL and on ours.
postgres_meta() {
  local programs=() version binary root=$PWD checkout=${POSTGRES_META:-}
  [ -x tools/postgres/client/bin/psql ] || tools/pg-extras.sh client
  mkdir -p "$dir/postgres-meta"
  cp tools/clients/postgres-meta/* tools/clients/postgres-meta/.npmrc "$dir/postgres-meta/"
  if ! cmp -s "$dir/postgres-meta/package-lock.json" "$dir/postgres-meta/node_modules/.of-lock"; then
    npm ci --prefix "$dir/postgres-meta" --silent --no-audit --no-fund
    cp "$dir/postgres-meta/package-lock.json" "$dir/postgres-meta/node_modules/.of-lock"
  fi
  for version in "${SUPABASE_CLIS[@]}"; do programs+=("$(supabase_program "$version")"); done
  tools/with-server.sh tools/clients/postgres-meta.sh "${FERROBASE_BIN:-target/debug/ferrobase}" "$dir/postgres-meta/node_modules" \
    "${programs[@]}" -- "$checkout"
  [ -n "$checkout" ] || return 0
  [ -e "$checkout/node_modules/vitest" ] || npm ci --prefix "$checkout" --ignore-scripts --silent --no-audit --no-fund
  checkout=$(realpath "$checkout")
  binary=$(realpath "${FERROBASE_BIN:-target/debug/ferrobase}")
  mkdir -p "$dir/postgres-meta-suite/supabase"
  echo 'project_id = "postgres-meta-suite"' >"$dir/postgres-meta-suite/supabase/config.toml"
  (cd "$dir/postgres-meta-suite" && "$binary" test -- node "$root/tools/clients/postgres-meta-suite.mjs" "$checkout")
}

# supabase-py: storage, then channels, with the tables and policies that they need.
supabase_py() {
  tools/with-server.sh bash -c 'set -e
    "$1" tools/clients/storage_supabase.py
    target/debug/ferrobase migrate --dir supabase-compat-tests/supabase/migrations >/dev/null
    "$1" tools/clients/realtime_supabase.py' supabase-py "$1"
}

export AWS_ACCESS_KEY_ID=625729a08b95bf1b7ff351a663f3a23c AWS_DEFAULT_REGION=local
export AWS_SECRET_ACCESS_KEY=850181e4652dd023b7a98c58ae0d2d34bd487ee0cc3254aed6eda37307425907
export AWS_EC2_METADATA_DISABLED=true AWS_CONFIG_FILE=/dev/null AWS_SHARED_CREDENTIALS_FILE=/dev/null

for name; do
  echo "== $name"
  case $name in
    boto3) environment boto3 boto3; run=("$dir/boto3/bin/python" tools/clients/s3_boto3.py) ;;
    # The newest aws-cli of PyPI is version 1; its S3 part is that of version 2.
    aws-cli) environment aws-cli awscli; run=(bash tools/clients/s3_aws.sh "$dir/aws-cli/bin/aws") ;;
    supabase-py) environment supabase-py supabase; supabase_py "$dir/supabase-py/bin/python"; continue ;;
    rclone) run=(bash tools/clients/s3_rclone.sh "$(tools/go-program.sh rclone github.com/rclone/rclone@latest)") ;;
    tus | uppy)
      mkdir -p "$dir/uppy"
      cp tools/clients/uppy/* "$dir/uppy/"
      # Reinstalls if the lock file has changed.
      if ! cmp -s "$dir/uppy/package-lock.json" "$dir/uppy/node_modules/.of-lock"; then
        npm ci --prefix "$dir/uppy" --silent --no-audit --no-fund
        cp "$dir/uppy/package-lock.json" "$dir/uppy/node_modules/.of-lock"
      fi
      run=(node "$dir/uppy/$name.mjs") ;;
    versitygw) versitygw; continue ;;
    nats) nats; continue ;;
    testing | apps) "$name"; continue ;;
    contract) contract; continue ;;
    supabase-cli) supabase_cli; continue ;;
    postgres) postgres; continue ;;
    postgres-meta) postgres_meta; continue ;;
    unit) tools/test-unit.sh; continue ;;
    prometheus | instances | pgbouncer | failover | acme | containers) "$name"; continue ;;
    *) echo "test-tools: unknown program $name" >&2; exit 2 ;;
  esac
  tools/with-server.sh "${run[@]}"
done
