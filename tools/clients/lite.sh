#!/usr/bin/env bash
# Starts @supabase/lite, Supabase's own small server with these APIs, on PostgreSQL in WebAssembly, with the contract suite's schema.
#   tools/clients/lite.sh PROGRAM FOLDER PORT     serves until it is killed
set -euo pipefail
program=$(realpath "$1") folder=$2 port=$3
migrations=$PWD/supabase-compat-tests/supabase/migrations
export DO_NOT_TRACK=1 EXPERIMENTAL_STORAGE=1
mkdir -p "$folder/supabase/migrations"
cat >"$folder/supabase/config.toml" <<TOML
[api]
port = $port
[db]
driver = "pglite"
url = "supabase/.temp/data"
[db.seed]
enabled = false
[auth]
jwt_secret = "super-secret-jwt-token-with-at-least-32-characters-long"
publishable_key = "sb_publishable_ACJWlzQHlZjBrEguHvfOxg_3BJgxAaH"
secret_key = "sb_secret_N7UND0UgjKTVK-Uodkm0Hg_xSvEMPvz"
[auth.email]
enable_confirmations = false
TOML
# It has no realtime, whose objects the schema names.
cat >"$folder/supabase/migrations/20250101000000_realtime.sql" <<'SQL'
create publication supabase_realtime;
create schema realtime;
create table realtime.messages (topic text);
create function realtime.topic() returns text language sql as 'select null::text';
create function realtime.send(payload jsonb, event text, topic text, private boolean) returns void language sql as 'select';
SQL
cp "$migrations"/*.sql "$folder/supabase/migrations/"
cd "$folder"
"$program" migration up
exec "$program" start --no-admin
