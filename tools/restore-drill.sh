#!/usr/bin/env bash
# A restore drill: people write, somebody deletes half of the data, the disk is lost; restores bring back the moment
# before the mistake and the last moment. Prints a report in Markdown.
#   tools/restore-drill.sh [PROGRAM] [SECONDS]      default: target/debug/ferrobase, 60 s of writing
set -euo pipefail
cd "$(dirname "$0")/.."
program=$(realpath "${1:-target/debug/ferrobase}")
seconds=${2:-60}
every=5s
work=$(mktemp -d -t ferrobase-drill-XXXXXX)
chmod 755 "$work"
server=
finish() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  wait 2>/dev/null || true
  rm -rf "$work"
}
trap finish EXIT

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
key=eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzdXBhYmFzZS1kZW1vIiwicm9sZSI6InNlcnZpY2Vfcm9sZSIsImV4cCI6MTk4MzgxMjk5Nn0.EGIM96RAZx35lJzdJsyH-qQwv8Hdp7fsn3W0YpN81IU
base=http://127.0.0.1:$port
mkdir "$work/migrations"
cat > "$work/migrations/0001_ledger.sql" <<'SQL'
create table public.ledger (n int primary key, written_at timestamptz not null default clock_timestamp(), noise text not null);
SQL
export FERROBASE_DEV=true FERROBASE_MIGRATIONS=$work/migrations FERROBASE_DATA_DIR=$work/data RUST_LOG=error
export FERROBASE_LISTEN=127.0.0.1:$port FERROBASE_DB_PORT=$((port + 1)) FERROBASE_INBOX_LISTEN=127.0.0.1:$((port + 2))
export FERROBASE_ADMIN_LISTEN=127.0.0.1:$((port + 3))
recipient=$("$program" backup key "$work/key.txt" | sed 's/.*=//')

ask() { curl -sS --fail-with-body -H "apikey: $key" -H "authorization: Bearer $key" -H 'content-type: application/json' "$@"; }
now() { date -u +%Y-%m-%dT%H:%M:%S.%6NZ; }
serve() {
  "$program" serve > "$work/server.log" 2>&1 &
  server=$!
  until curl -sf "$base/health" > /dev/null; do
    kill -0 "$server" || { cat "$work/server.log" >&2; exit 1; }
    sleep 0.1
  done
}
count() { ask "$base/rest/v1/ledger?select=n&limit=1" -H 'prefer: count=exact' -D - -o /dev/null | tr -d '\r' | sed -n 's/^content-range: .*\///Ip'; }

FERROBASE_BACKUP_TO=$work/backups FERROBASE_BACKUP_RECIPIENT=$recipient FERROBASE_BACKUP_EVERY=24h FERROBASE_BACKUP_LOG_EVERY=$every serve
ask -X POST "$base/storage/v1/bucket" -d '{"name":"b"}' > /dev/null
until grep -q '"chain": "' "$work/data/backups/state.json" 2>/dev/null; do sleep 0.2; done

# Records every acknowledged write with its time.
n=0
write_for() {
  local end=$((SECONDS + $1))
  while [ "$SECONDS" -lt "$end" ]; do
    n=$((n + 1))
    ask -X POST "$base/rest/v1/ledger" -d "{\"n\":$n,\"noise\":\"$(head -c 600 /dev/urandom | base64 -w0)\"}"
    [ $((n % 10)) -ne 0 ] || head -c 100000 /dev/urandom | ask -X POST "$base/storage/v1/object/b/$n" -H 'content-type: application/pdf' --data-binary @- > /dev/null
    echo "$n $(now)" >> "$work/acknowledged"
  done
}
write_for "$((seconds / 2))"
before=$(now)
rows_before=$n
ask -X DELETE "$base/rest/v1/ledger?n=lte.$((n / 2))"
deleted=$((n / 2))
write_for "$((seconds / 2))"
kill -9 "$server"
lost_at=$(now)
wait "$server" 2>/dev/null || true
size=$(du -sm "$work/data" | cut -f1)
pieces=$(find "$work/backups" -name 'ferrobase-log-*' | wc -l)
stored=$(du -sm "$work/backups" | cut -f1)
# PostgreSQL outlives its server and locks the folder; a lost disk ends both.
FERROBASE_DATA_DIR=$work/data "$program" doctor > /dev/null 2>&1 || true
rm -rf "$work/data"

report() { printf '| %s | %s |\n' "$1" "$2"; }
timed() {
  local begin end
  begin=$(date +%s.%N)
  "$@" > "$work/out" 2>&1 || { cat "$work/out" >&2; exit 1; }
  end=$(date +%s.%N)
  took=$(echo "$begin $end" | awk '{ printf "%.1f s", $2 - $1 }')
}
echo "| step | result |"
echo "|---|---|"
report "written before the mistake" "$rows_before rows, $((rows_before / 10)) files"
report "the mistake" "$deleted rows deleted at $before"
report "written in total" "$n rows in $seconds s; server killed and disk lost at $lost_at"
report "data folder; archive with $pieces pieces (every $every)" "$size MiB; $stored MiB"
archive=$(find "$work/backups" -name 'ferrobase-2*' | sort | head -n 1)
timed "$program" backup verify "$archive" --identity "$work/key.txt"
report "\`backup verify\` of the archive" "$took, $(sed -n 's/.*: \(.* tables.*\), as of.*/\1/p' "$work/out" | head -n 1)"
rm -rf "$work/data"
timed "$program" restore "$work/backups" --identity "$work/key.txt" --to "$before"
serve
found=$(count)
report "\`restore --to\` the moment before the mistake" "$took; $found of $rows_before rows"
[ "$found" = "$rows_before" ] || { echo "rows are missing" >&2; exit 1; }
files=$(ask -X POST "$base/storage/v1/object/list/b" -d '{"prefix":"","limit":10000}' | grep -o '"name":"[0-9]*"' | grep -o '[0-9]*')
for file in $files; do
  [ "$(ask "$base/storage/v1/object/b/$file" | wc -c)" = 100000 ] || { echo "file $file is not whole" >&2; exit 1; }
done
report "its files, downloaded" "$(echo "$files" | wc -w) of $((rows_before / 10)), all complete"
kill "$server"; wait "$server" || true
rm -rf "$work/data"
timed "$program" restore "$work/backups" --identity "$work/key.txt" --to latest
serve
found=$(count)
report "\`restore --to latest\`" "$took; $found rows of $((n - deleted)) that were acknowledged when the disk was lost"
last=$(ask "$base/rest/v1/ledger?select=n&order=n.desc&limit=1" | grep -o '[0-9]*')
report "lost with the disk" "$((n - last)) rows: those of the last $(awk -v last="$last" '$1 == last { print $2 }' "$work/acknowledged" | xargs -I{} date -u -d {} +%s.%N | awk -v end="$(date -u -d "$lost_at" +%s.%N)" '{ printf "%.1f s", end - $1 }')"
