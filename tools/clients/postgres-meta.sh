#!/usr/bin/env bash
# postgres-meta on a development server's database, with Studio's calls, and its types compared with ours.
#   postgres-meta.sh FERROBASE SERVER [CHECKOUT]    SERVER is dist/server/server.js of the npm package. With a CHECKOUT of
#                                                   supabase/postgres-meta and its packages, its test database is loaded and its types
#                                                   of that equal ours byte for byte; the package's are in an older form.
# Runs below tools/with-server.sh.
set -euo pipefail
ferrobase=$1 server=$2 checkout=${3:-}
work=$(mktemp -d) children=()
stop() {
  for child in ${children[@]+"${children[@]}"}; do kill "$child" 2>/dev/null || true; done
  wait
  rm -rf "$work"
}
trap stop EXIT
export PG_META_DB_URL=${DATABASE_URL_OF_TEST/postgres:postgres/supabase_admin:postgres}

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

[ -n "$checkout" ] || exit 0
for file in "$checkout"/test/db/*.sql; do psql -Xq -v ON_ERROR_STOP=1 "$PG_META_DB_URL" -f "$file" >/dev/null; done
(cd "$checkout" && PG_META_GENERATE_TYPES=typescript PG_META_GENERATE_TYPES_INCLUDED_SCHEMAS=public,graphql_public \
  PG_META_GENERATE_TYPES_DETECT_ONE_TO_ONE_RELATIONSHIPS=true PG_META_POSTGREST_VERSION=14.1 \
  node --loader ts-node/esm src/server/server.ts 2>"$work/log") >"$work/theirs.ts" || { tail -20 "$work/log" >&2; exit 1; }
{ DATABASE_URL=$PG_META_DB_URL "$ferrobase" types typescript --schema public,graphql_public; echo; } >"$work/ours.ts"
diff "$work/theirs.ts" "$work/ours.ts"
echo "ok: $(wc -l <"$work/ours.ts") lines of types, byte for byte"
