#!/usr/bin/env bash
# PostgreSQL's own programs, Drizzle and Prisma with a running project: introspection, dump, and restore into a fresh
# server and over a running one.
#   postgres.sh FERROBASE ORM     our program, and the folder with the packages of tools/clients/orm
set -euo pipefail
ferrobase=$(realpath "$1") orm=$(realpath "$2") repository=$PWD
bin=$repository/tools/postgres/client/bin
work=$(mktemp -d -t ferrobase-postgres-XXXXXX)
chmod 755 "$work"
stop() {
  for project in one two; do (cd "$work/$project" 2>/dev/null && "$ferrobase" stop --no-backup >/dev/null 2>&1) || true; done
  kill "$ports" 2>/dev/null || true
  rm -rf "$work"
}
trap stop EXIT
node tools/free-ports.mjs 8 >"$work/ports" &
ports=$!
until [ -s "$work/ports" ]; do kill -0 "$ports" || exit 1; sleep 0.05; done
read -r api1 db1 shadow1 inbox1 api2 db2 shadow2 inbox2 <"$work/ports"

# project NAME API DB SHADOW INBOX: served in the background.
project() {
  mkdir -p "$work/$1/supabase/migrations"
  printf 'project_id = "pg-%s"\n[api]\nport = %s\n[db]\nport = %s\nshadow_port = %s\n[local_smtp]\nport = %s\n' "$@" >"$work/$1/supabase/config.toml"
  [ "$1" = two ] || cat >"$work/one/supabase/migrations/20260101000000_shop.sql" <<'SQL'
create type public.mood as enum ('sad', 'glad');
create table public.people (id bigint generated always as identity primary key, name text not null, mood public.mood, owner uuid references auth.users (id));
alter table public.people enable row level security;
create policy "all read" on public.people for select using (true);
create table public.pets (id bigint generated always as identity primary key, person bigint not null references public.people (id), name text);
create view public.glad with (security_invoker = true) as select name from public.people where mood = 'glad';
insert into public.people (name, mood) values ('Ada', 'glad');
SQL
  (cd "$work/$1" && "$ferrobase" start >/dev/null 2>"$work/$1.log") || { cat "$work/$1.log" >&2; exit 1; }
}
url() { echo "postgresql://${2:-postgres}:postgres@127.0.0.1:$1/postgres"; }
# people API_PORT: the people in the REST API.
people() { node -e 'fetch(process.argv[1], { headers: { apikey: "sb_publishable_ACJWlzQHlZjBrEguHvfOxg_3BJgxAaH" } }).then((a) => a.text()).then(console.log)' "http://127.0.0.1:$1/rest/v1/people?select=name,mood"; }
# shows API_PORT TEXT WHAT: waits until the REST API shows it, because its cache is reloaded after a change of tables.
shows() {
  local try
  for try in $(seq 100); do
    [ "$(people "$1")" != "$2" ] || { echo "ok: $3"; return; }
    sleep 0.1
  done
  echo "$3: $(people "$1")" >&2
  exit 1
}
ada='[{"name":"Ada","mood":"glad"}]'
project one "$api1" "$db1" "$shadow1" "$inbox1"
project two "$api2" "$db2" "$shadow2" "$inbox2"

"$bin/psql" -X "$(url "$db1")" -c '\d+ public.people' -c '\dn' -c '\dp public.*' -c '\df auth.*' -c '\l' -c '\du' -c '\dx' >"$work/described"
grep -q 'POLICY "all read"' "$work/described"
echo "ok: psql describes"

# Connections are encrypted, and the server's certificate can be verified. The pinned psql may be built without TLS.
tls=
for program in "$bin/psql" psql; do
  said=$("$program" -X "$(url "$db1")?sslmode=require" -c 'select' 2>&1) || true
  case "$said" in *"SSL support is not compiled in"*) ;; *) tls=${tls:-$program} ;; esac
done
[ -n "$tls" ] || { echo "postgres: a psql with TLS is missing: put one on PATH (Debian: apt-get install postgresql-client)" >&2; exit 2; }
for mode in require "verify-full&sslrootcert=$work/one/.ferrobase/db/server.crt"; do
  [ "$("$tls" -XAt "$(url "$db1")?sslmode=$mode" -c 'select ssl from pg_stat_ssl where pid = pg_backend_pid()')" = t ]
done
echo "ok: encryption"

"$bin/pg_dump" -Fc -n public -f "$work/public.dump" "$(url "$db1")"
"$bin/pg_restore" --clean --if-exists --exit-on-error -d "$(url "$db2" supabase_admin)" "$work/public.dump" 2>"$work/restore.log" ||
  { cat "$work/restore.log" >&2; exit 1; }
shows "$api2" "$ada" "pg_dump of public, restored into a fresh server"

"$bin/psql" -Xq "$(url "$db1")" -c "update public.people set name = 'Bob'"
"$bin/pg_restore" --clean --if-exists --exit-on-error -d "$(url "$db1" supabase_admin)" "$work/public.dump"
shows "$api1" "$ada" "restored over the running server"

# pg_restore cannot drop the keys of partitions (realtime.messages), one by one.
"$bin/pg_dump" -Fc -N realtime -f "$work/all.dump" "$(url "$db1" supabase_admin)"
"$bin/psql" -Xq "$(url "$db1")" -c "update public.people set name = 'Bob'"
"$bin/pg_restore" --clean --if-exists --exit-on-error --single-transaction -d "$(url "$db1" supabase_admin)" "$work/all.dump"
shows "$api1" "$ada" "the whole database restored over the running server"

old=$(command -v pg_dump || true)
if [ -n "$old" ] && [[ "$("$old" --version)" =~ \ (1[0-7])\. ]]; then
  if (cd "$work/one" && FERROBASE_PG_TOOLS=$(dirname "$old") "$ferrobase" db dump >/dev/null 2>"$work/old.log"); then
    echo "db dump went through with $("$old" --version)" >&2
    exit 1
  fi
  grep -q 'postgresql-client-18' "$work/old.log" || { cat "$work/old.log" >&2; exit 1; }
  echo "ok: $(cat "$work/old.log")"
fi

cd "$orm"
printf '{"dialect":"postgresql","out":"%s","schemaFilter":["public"],"dbCredentials":{"url":"%s"}}' "$work/drizzle" "$(url "$db1")" >"$work/drizzle.config.json"
node_modules/.bin/drizzle-kit pull --config "$work/drizzle.config.json" >"$work/drizzle.log" 2>&1 || { cat "$work/drizzle.log" >&2; exit 1; }
for wanted in 'pgEnum("mood"' 'pgTable("people"' 'pgPolicy("all read"' 'name: "pets_person_fkey"' 'pgView("glad"'; do
  grep -qF "$wanted" "$work/drizzle/schema.ts" || { echo "drizzle-kit: $wanted is missing" >&2; cat "$work/drizzle/schema.ts" >&2; exit 1; }
done
echo "ok: drizzle-kit pull"

mkdir -p "$work/prisma"
printf 'datasource db {\n  provider = "postgresql"\n}\n' >"$work/prisma/schema.prisma"
printf 'export default { schema: "%s", datasource: { url: "%s" } };\n' "$work/prisma/schema.prisma" "$(url "$db1")" >"$work/prisma/prisma.config.mjs"
if node_modules/.bin/prisma db pull --config "$work/prisma/prisma.config.mjs" >"$work/prisma.log" 2>&1; then
  grep -q '^model people' "$work/prisma/schema.prisma"
  echo "ok: prisma db pull"
elif grep -q 'binaries.prisma.sh' "$work/prisma.log"; then
  echo "skipped: prisma db pull, whose engine cannot be downloaded here (binaries.prisma.sh)"
else
  cat "$work/prisma.log" >&2
  exit 1
fi
