#!/usr/bin/env bash
# Replays recorded answers of Supabase Auth against `ferrobase serve --only auth`, group by group, on a PostgreSQL
# cluster of its own that is gone afterwards.
#
#   ORACLE_DIR=<folder> auth.sh [replay options, e.g. --group default --failures 20 --by-tag]
#
# ORACLE_DIR holds replay.py, tools.py, config.json, bootstrap.sql, fixtures.sql and open.jsonl.gz. By environment:
#   FERROBASE    the binary (default target/debug/ferrobase)
#   PG_BIN_DIR   initdb, pg_ctl and postgres (default the newest in /usr/lib/postgresql)
#   ORACLE_PORT  port of the cluster (default 55190); ORACLE_PORT_BASE  ports of the replay (default 55300)
# Needs python3 and psql. Fails when a scenario differs that docs/auth-exceptions.md does not list, and after a replay
# of all of them when one is listed that does not differ.
set -euo pipefail

root=$(cd "$(dirname "$0")/../../.." && pwd)
: "${ORACLE_DIR:?set it to the folder with the recorded answers}"
binary=${FERROBASE:-$root/target/debug/ferrobase}
bin=${PG_BIN_DIR:-$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1)}
port=${ORACLE_PORT:-55190}
[ -x "$bin/initdb" ] || { echo "initdb is not in PG_BIN_DIR ('$bin')" >&2; exit 2; }
[ -x "$binary" ] || { echo "$binary is missing: build it first" >&2; exit 2; }

cluster=$(mktemp -d /tmp/auth-oracle.XXXXXX)
as_owner=()
if [ "$(id -u)" = 0 ]; then
  # initdb refuses root.
  chown nobody "$cluster"
  as_owner=(setpriv --reuid nobody --clear-groups)
fi
stop() {
  "${as_owner[@]}" "$bin/pg_ctl" -D "$cluster/data" -m immediate -s stop || true
  rm -rf "$cluster"
}
trap stop EXIT
(
  cd "$cluster"
  "${as_owner[@]}" "$bin/initdb" -D "$cluster/data" -A trust -U postgres --no-instructions >/dev/null
  "${as_owner[@]}" "$bin/pg_ctl" -D "$cluster/data" -s -w -l "$cluster/log" \
    -o "-p $port -k $cluster -c listen_addresses=127.0.0.1 -c fsync=off -c max_connections=200" start
)

[ $# -gt 0 ] || set -- --all --jobs 2 --failures 0
everything=()
[ "$1" != --all ] || everything=(--all)
cd "$ORACLE_DIR"
exec_replay=(python3 replay.py --server-cmd "$binary serve --only auth"
  --db-url "postgres://postgres@127.0.0.1:$port/postgres" --port-base "${ORACLE_PORT_BASE:-55300}"
  --file open.jsonl.gz "$@" --json "$cluster/report.json")
PYTHONDONTWRITEBYTECODE=1 "${exec_replay[@]}"
python3 "$root/server/tests/oracle/auth_listed.py" "$cluster/report.json" "$root/docs/auth-exceptions.md" "${everything[@]}"
