#!/usr/bin/env bash
# The contract suite with only a URL and an anon key; then the same against @supabase/lite and Supabase Auth itself, and the differences.
#   tools/clients/contract.sh LITE [SUPABASE_AUTH]     the program of @supabase/lite, and that built from supabase/auth, in a folder
#                                                      with its migrations; without it the last part is left out
# Runs below tools/with-server.sh, with the settings of supabase-compat-tests/server.env.
set -euo pipefail
lite=$1 auth=${2:-} work=$(mktemp -d) children=()
stop() {
  for child in ${children[@]+"${children[@]}"}; do kill "$child" 2>/dev/null || true; done
  wait
  rm -rf "$work"
}
trap stop EXIT
ferrobase=${FERROBASE_BIN:-target/debug/ferrobase}
own=$SUPABASE_URL
anon=eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzdXBhYmFzZS1kZW1vIiwicm9sZSI6ImFub24iLCJleHAiOjE5ODM4MTI5OTZ9.CRXP1A7WOeoJeXxjNni43kdQwgnWNReilDMblYTn_I0
service=eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzdXBhYmFzZS1kZW1vIiwicm9sZSI6InNlcnZpY2Vfcm9sZSIsImV4cCI6MTk4MzgxMjk5Nn0.EGIM96RAZx35lJzdJsyH-qQwv8Hdp7fsn3W0YpN81IU
suite() { (cd supabase-compat-tests && env -u INBOX_URL -u BASE_URL "$@"); }
ask() { psql -XAt "$DATABASE_URL_OF_TEST" -c "$1"; }
people='select count(*) from auth.users'

echo "-- without a schema, a service key and a mailbox"
suite SUPABASE_ANON_KEY="$anon" npm test --silent -- tests/auth.test.ts tests/rest.test.ts tests/aidbridge.test.ts >"$work/bare.log" 2>&1 || { cat "$work/bare.log" >&2; exit 1; }
sed -n '/^Answers that/,$p' "$work/bare.log"
grep -q "the suite's schema is not there" "$work/bare.log"

"$ferrobase" migrate --dir supabase-compat-tests/supabase/migrations >/dev/null
before=$(ask "$people")
echo "-- without a service key and a mailbox"
suite SUPABASE_ANON_KEY="$anon" COMPAT_REPORT="$work/anon.json" npm test --silent >"$work/anon.log" 2>&1 || { cat "$work/anon.log" >&2; exit 1; }
sed -n '/^Answers that/,$p' "$work/anon.log"
grep -q 'no service key: set SUPABASE_SERVICE_ROLE_KEY' "$work/anon.log"
grep -q 'no mailbox: set MAILPIT_URL' "$work/anon.log"
after=$(ask "$people")
[ "$after" -le "$before" ] || { echo "contract: $before people before, $after after" >&2; ask 'select email, phone, is_anonymous from auth.users'; exit 1; }
[ "$(ask 'select count(*) from storage.objects')" = 0 ] || { echo "contract: files were left" >&2; ask 'select name from storage.objects'; exit 1; }
[ "$(ask 'select (select count(*) from compat_authors) + (select count(*) from compat_notes) + (select count(*) from live_notes)')" = 0 ]

# free_ports COUNT: prints ports that stay reserved.
free_ports() {
  rm -f "$work/ports"
  node tools/free-ports.mjs "$1" >"$work/ports" &
  children+=($!)
  until [ -s "$work/ports" ]; do sleep 0.05; done
}

echo "-- @supabase/lite"
suite SUPABASE_ANON_KEY="$anon" SUPABASE_SERVICE_ROLE_KEY="$service" COMPAT_REPORT="$work/ferrobase.json" npm test --silent >"$work/own.log" 2>&1 || { cat "$work/own.log" >&2; exit 1; }
free_ports 1
read -r port <"$work/ports"
tools/clients/lite.sh "$lite" "$work/lite" "$port" >"$work/lite.log" 2>&1 &
children+=($!)
node tools/wait-for.mjs "http://127.0.0.1:$port/" $! || { tail -20 "$work/lite.log" >&2; exit 1; }
suite SUPABASE_URL="http://127.0.0.1:$port" SUPABASE_PUBLISHABLE_KEY=sb_publishable_ACJWlzQHlZjBrEguHvfOxg_3BJgxAaH \
  SUPABASE_SECRET_KEY=sb_secret_N7UND0UgjKTVK-Uodkm0Hg_xSvEMPvz COMPAT_REPORT="$work/lite.json" npm test --silent >"$work/theirs.log" 2>&1 || true
[ -s "$work/lite.json" ] || { cat "$work/theirs.log" >&2; exit 1; }
sed -n "/^Answers that/,/^Different/p" "$work/theirs.log"
suite npm run --silent compare -- "$work/ferrobase.json" "$work/lite.json" >"$work/compared" || true
sed -i "s#$own#Ferrobase#; s#http://127.0.0.1:$port#@supabase/lite#" "$work/compared"
cat "$work/compared"
# Ours has passed above, so each difference is the other server's.
both=$(sed -n '1s/^.*: \([0-9]*\) answers from both.*$/\1/p' "$work/compared")
[ "${both:-0}" -ge 100 ] || { echo "contract: only ${both:-0} answers could be compared with @supabase/lite" >&2; exit 1; }
grep -q '^      @supabase/lite: ' "$work/compared"
kill "${children[-1]}"
[ -n "$auth" ] || exit 0

echo "-- Supabase Auth"
suite COMPAT_REPORT="$work/ferrobase.json" npm test --silent -- tests/auth >"$work/own.log" 2>&1 || { cat "$work/own.log" >&2; exit 1; }
psql -Xq "${DATABASE_URL_OF_TEST/postgres:postgres/supabase_admin:postgres}" -c 'create database upstream'
upstream=${DATABASE_URL_OF_TEST/postgres:postgres/supabase_admin:postgres}
upstream=${upstream%/postgres}/upstream
psql -Xq "$upstream" -c 'create schema auth'
free_ports 2
read -r port gateway <"$work/ports"
(
  cd "$work"
  PORT=$port GOTRUE_API_HOST=127.0.0.1 API_EXTERNAL_URL=http://127.0.0.1:$gateway/auth/v1 GOTRUE_SITE_URL=http://127.0.0.1:3000 \
    GOTRUE_DB_DRIVER=postgres DATABASE_URL="$upstream?search_path=auth&sslmode=disable" DB_NAMESPACE=auth \
    GOTRUE_DB_MIGRATIONS_PATH=$(dirname "$auth")/migrations \
    GOTRUE_JWT_SECRET=super-secret-jwt-token-with-at-least-32-characters-long GOTRUE_JWT_EXP=3600 GOTRUE_JWT_AUD=authenticated \
    GOTRUE_JWT_DEFAULT_GROUP_NAME=authenticated GOTRUE_JWT_ADMIN_ROLES=service_role GOTRUE_JWT_ISSUER=http://127.0.0.1:$gateway/auth/v1 \
    GOTRUE_MAILER_URLPATHS_CONFIRMATION=/auth/v1/verify GOTRUE_MAILER_URLPATHS_INVITE=/auth/v1/verify \
    GOTRUE_MAILER_URLPATHS_RECOVERY=/auth/v1/verify GOTRUE_MAILER_URLPATHS_EMAIL_CHANGE=/auth/v1/verify \
    GOTRUE_MAILER_AUTOCONFIRM=true GOTRUE_SMS_AUTOCONFIRM=true GOTRUE_EXTERNAL_EMAIL_ENABLED=true GOTRUE_LOG_LEVEL=warn \
    GOTRUE_RATE_LIMIT_TOKEN_REFRESH=100000 GOTRUE_RATE_LIMIT_VERIFY=100000 GOTRUE_RATE_LIMIT_OTP=100000 GOTRUE_RATE_LIMIT_ANONYMOUS_USERS=100000 \
    GOTRUE_RATE_LIMIT_EMAIL_SENT=100000 GOTRUE_RATE_LIMIT_WEB3=100000 \
    bash -c '"$1" migrate && exec "$1" serve' auth "$auth" >"$work/upstream.log" 2>&1 &
  echo $! >"$work/pid"
)
children+=("$(cat "$work/pid")")
node tools/clients/gateway.mjs "$gateway" "$port" "$anon" "$service" &
children+=($!)
node tools/wait-for.mjs "http://127.0.0.1:$gateway/auth/v1/health" "$(cat "$work/pid")" || { tail -20 "$work/upstream.log" >&2; exit 1; }
suite SUPABASE_URL="http://127.0.0.1:$gateway" COMPAT_REPORT="$work/upstream.json" npm test --silent -- tests/auth >"$work/theirs.log" 2>&1 || true
[ -s "$work/upstream.json" ] || { cat "$work/theirs.log" >&2; exit 1; }
sed -n '/^Answers that/,$p' "$work/theirs.log"
suite npm run --silent compare -- "$work/ferrobase.json" "$work/upstream.json" >"$work/compared" || true
sed "s#$own#Ferrobase#; s#http://127.0.0.1:$gateway#Supabase Auth#" "$work/compared"
# Supabase Auth answers 500 to an assertion of an unknown key, where we answer 422 as it does for a wrong code.
known='supabase.auth.mfa.webauthn.authenticate > reports an error'
if grep '^  [A-Za-z]*: ' "$work/compared" | grep -vF "$known"; then
  echo "contract: these answers differ from Supabase Auth's" >&2
  exit 1
fi
