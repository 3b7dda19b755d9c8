#!/usr/bin/env bash
# Tests postgres-meta on a development server's database with Studio's calls, and compares the types that Supabase's tools print with ours.
#   postgres-meta.sh FERROBASE MODULES CLI… [-- CHECKOUT]
# MODULES is the node_modules of tools/clients/postgres-meta, CLI a program of the Supabase CLI. If CHECKOUT is a checkout of
# supabase/postgres-meta, its test database is loaded and compared as well. Runs below tools/with-server.sh.
set -euo pipefail
ferrobase=$(realpath "$1") modules=$(realpath "$2") checkout=
shift 2
clis=()
while [ $# -gt 0 ]; do
  [ "$1" != -- ] || { checkout=${2:-}; break; }
  clis+=("$(realpath "$1")")
  shift
done
psql=$PWD/tools/postgres/client/bin/psql
work=$(mktemp -d) children=()
stop() {
  for child in ${children[@]+"${children[@]}"}; do kill "$child" 2>/dev/null || true; done
  wait
  rm -rf "$work"
}
trap stop EXIT
export PG_META_DB_URL=${DATABASE_URL_OF_TEST/postgres:postgres/supabase_admin:postgres}
export SUPABASE_TELEMETRY_DISABLED=1 DO_NOT_TRACK=1 NO_COLOR=1

server=$modules/@supabase/postgres-meta/dist/server/server.js
node tools/free-ports.mjs 1 >"$work/port" &
children+=($!)
until [ -s "$work/port" ]; do sleep 0.05; done
port=$(cat "$work/port")
PG_META_HOST=127.0.0.1 PG_META_PORT=$port PG_META_ADMIN_PORT=$((port + 1)) node "$server" >"$work/log" 2>&1 &
children+=($!)
node tools/wait-for.mjs "http://127.0.0.1:$port/health" $! || { tail -20 "$work/log" >&2; exit 1; }
for route in schemas tables columns policies functions triggers extensions types roles publications views foreign-tables \
  materialized-views indexes config column-privileges table-privileges generators/typescript?included_schemas=public; do
  code=$(curl -s -o "$work/answer" -w '%{http_code}' "http://127.0.0.1:$port/$route")
  [ "$code" = 200 ] || { echo "postgres-meta: /$route is $code: $(head -c 300 "$work/answer")" >&2; exit 1; }
done
echo "ok: each list of postgres-meta"
asked=$(curl -s -X POST "http://127.0.0.1:$port/query" -H 'content-type: application/json' -d '{"query":"select current_user as who"}')
[ "$asked" = '[{"who":"supabase_admin"}]' ] || { echo "postgres-meta: $asked" >&2; exit 1; }

# Other calls made by Studio.
key=eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzdXBhYmFzZS1kZW1vIiwicm9sZSI6InNlcnZpY2Vfcm9sZSIsImV4cCI6MTk4MzgxMjk5Nn0.EGIM96RAZx35lJzdJsyH-qQwv8Hdp7fsn3W0YpN81IU
for path in 'auth/v1/admin/users?page=1&per_page=50' rest/v1/ storage/v1/bucket; do
  code=$(curl -s -o /dev/null -w '%{http_code}' -H "apikey: $key" -H "authorization: Bearer $key" "$SUPABASE_URL/$path")
  [ "$code" = 200 ] || { echo "Studio's call of /$path is answered with $code" >&2; exit 1; }
done
echo "ok: Studio's calls of the APIs"

# meta FOLDER LANGUAGE SCHEMAS: what this postgres-meta prints.
meta() {
  PG_META_GENERATE_TYPES=$2 PG_META_GENERATE_TYPES_INCLUDED_SCHEMAS=$3 PG_META_GENERATE_TYPES_DETECT_ONE_TO_ONE_RELATIONSHIPS=true \
    PG_META_POSTGREST_VERSION=14.1 node "$modules/$1/dist/server/server.js" 2>"$work/log" || { tail -20 "$work/log" >&2; exit 1; }
}
# cli PROGRAM SCHEMAS: what this CLI prints by URL, formatted as the CLI formats where its formatter is present.
cli() {
  local to=--db-url major
  major=$("$1" --version | cut -d. -f1)
  [ "$major" -lt 3 ] || to=--remote
  (cd "$work" && "$1" gen types --lang typescript "$to=${PG_META_DB_URL/127.0.0.1/0.0.0.0}" --schema "$2" 2>"$work/log") >"$work/raw.ts" ||
    { tail -20 "$work/log" >&2; exit 1; }
  node --input-type=module -e '
    import { readFileSync } from "node:fs";
    import { createRequire } from "node:module";
    import { pathToFileURL } from "node:url";
    const [modules, file] = process.argv.slice(1);
    const { format } = await import(pathToFileURL(createRequire(`${modules}/`).resolve("oxfmt")));
    process.stdout.write((await format("types.ts", readFileSync(file, "utf8"), { semi: false, printWidth: 80 })).code);
  ' "$modules" "$work/raw.ts"
}
differing=0
# same WHAT: that both files are equal.
same() {
  if ! diff "$work/theirs" "$work/ours" || ! [ -s "$work/ours" ]; then
    echo "postgres-meta: $1 differs" >&2
    differing=$((differing + 1))
  else
    echo "ok: $(wc -l <"$work/ours") lines of $1, byte for byte"
  fi
}
# ours LANGUAGE SCHEMAS OPTION…
ours() {
  local language=$1 schemas=$2
  shift 2
  DATABASE_URL=$PG_META_DB_URL "$ferrobase" types "$language" --schema "$schemas" "$@"
}
# compared SCHEMAS LANGUAGE…: each form of TypeScript, and other languages.
compared() {
  local name program
  for name in @supabase/postgres-meta postgres-meta-0.98; do
    meta "$name" typescript "$1" >"$work/theirs"
    # It prints a line end of its own.
    { ours typescript "$1" --form "${name#@supabase/}"; echo; } >"$work/ours"
    same "TypeScript of $1 as ${name#@supabase/}"
  done
  { ours typescript "$1"; echo; } >"$work/ours"
  meta @supabase/postgres-meta typescript "$1" >"$work/theirs"
  same "TypeScript of $1 without a flag"
  for program in ${clis[@]+"${clis[@]}"}; do
    cli "$program" "$1" >"$work/theirs"
    ours typescript "$1" --form cli >"$work/ours"
    same "TypeScript of $1 as the Supabase CLI $("$program" --version)"
  done
  for name in "${@:2}"; do
    meta @supabase/postgres-meta "$name" "$1" >"$work/theirs"
    ours "$name" "$1" >"$work/ours"
    same "$name of $1"
  done
}

for file in shop views names; do
  "$psql" -Xq -v ON_ERROR_STOP=1 "$PG_META_DB_URL" -f "server/tests/types/$file.sql" >/dev/null
done
compared public go swift python
compared auth,public,storage go swift python
# Its Python generator fails where two schemas have a type of the same name.
compared names,shop,views go swift
if [ -n "$checkout" ]; then
  # It makes these itself.
  "$psql" -Xq "$PG_META_DB_URL" -c 'set client_min_messages to warning; drop extension postgres_fdw cascade'
  for file in "$checkout"/test/db/*.sql; do "$psql" -Xq -v ON_ERROR_STOP=1 "$PG_META_DB_URL" -f "$file" >/dev/null; done
  compared graphql_public,public go swift
fi
[ "$differing" = 0 ]
