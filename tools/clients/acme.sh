#!/usr/bin/env bash
# The server asks Pebble, a small ACME server, for a certificate, serves HTTPS with it, and does so again after a restart without Pebble.
# As root also on a port below 1024, in production: the rights of root are given up, and certificates are renewed afterwards.
#   tools/clients/acme.sh FERROBASE PEBBLE PEBBLE-CHALLTESTSRV
set -euo pipefail
cd "$(dirname "$0")/../.."
binary=$(realpath "$1") pebble=$2 dns=$3
work=$(mktemp -d /tmp/ferrobase-acme.XXXXXX)
chmod 755 "$work"
declare -A started
stop() { kill "${started[$1]}" 2>/dev/null || true; wait "${started[$1]}" 2>/dev/null || true; unset "started[$1]"; }
trap 'for name in "${!started[@]}"; do stop "$name"; done; rm -rf "$work"' EXIT
fail() { echo "acme: $1" >&2; tail -n 20 "$work"/*.log >&2; exit 1; }
# start NAME COMMAND…: in the background, with a log.
start() { local name=$1; shift; "$@" >"$work/$name.log" 2>&1 & started[$name]=$!; }

for part in one two; do start "ports-$part" node tools/free-ports.mjs 5; done
until [ -s "$work/ports-one.log" ] && [ -s "$work/ports-two.log" ]; do sleep 0.05; done
read -r api database inbox admin secure <"$work/ports-one.log"
read -r authority manage resolver http challenges <"$work/ports-two.log"
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1 \
  -addext basicConstraints=critical,CA:FALSE -keyout "$work/pebble.key" -out "$work/pebble.pem" 2>/dev/null
# pebble PORT SECONDS: checks names at this port and gives certificates for so long.
pebble() {
  cat >"$work/pebble.json" <<JSON
{ "pebble": { "listenAddress": "127.0.0.1:$authority", "managementListenAddress": "127.0.0.1:$manage",
  "certificate": "$work/pebble.pem", "privateKey": "$work/pebble.key", "httpPort": $http, "tlsPort": $1,
  "ocspResponderURL": "", "externalAccountBindingRequired": false,
  "profiles": { "default": { "description": "all", "validityPeriod": $2 } } } }
JSON
  PEBBLE_VA_NOSLEEP=1 PEBBLE_WFE_NONCEREJECT=20 start pebble "$pebble" -config "$work/pebble.json" -dnsserver "127.0.0.1:$resolver"
  rm -f "$work/root.pem"
  for _ in $(seq 60); do
    curl -fsS --cacert "$work/pebble.pem" "https://localhost:$manage/roots/0" -o "$work/root.pem" 2>/dev/null && return
    sleep 0.5
  done
  fail "Pebble does not answer"
}
start dns "$dns" -dns01 "127.0.0.1:$resolver" -management "127.0.0.1:$challenges" -defaultIPv6 "" -defaultIPv4 127.0.0.1 \
  -http01 "" -https01 "" -tlsalpn01 "" -doh ""

# serve NAME COMMAND…
serve() {
  FERROBASE_LISTEN=127.0.0.1:$api FERROBASE_DB_PORT=$database FERROBASE_INBOX_LISTEN=127.0.0.1:$inbox \
    FERROBASE_ADMIN_LISTEN=127.0.0.1:$admin FERROBASE_DATA_DIR=$work/data FERROBASE_TLS_LISTEN=127.0.0.1:$secure \
    FERROBASE_ACME_DOMAINS=one.acme.test,two.acme.test FERROBASE_ACME_EMAIL=ops@acme.test \
    FERROBASE_ACME_DIRECTORY=https://localhost:$authority/dir FERROBASE_ACME_CA=$work/pebble.pem start "$@"
}
# asked NAME: whether /health answers there, with a certificate that Pebble's root vouches for.
asked() {
  curl -fsS --max-time 5 --cacert "$work/root.pem" --resolve "$1:$secure:127.0.0.1" "https://$1:$secure/health" -o /dev/null \
    -w '%{http_version}\n' 2>>"$work/curl.log"
}
until_asked() { for _ in $(seq 240); do asked "$1" >/dev/null && return; sleep 0.5; done; fail "no answer by HTTPS at $1"; }

pebble "$secure" 7776000
serve first env FERROBASE_DEV=true "$binary" serve
until_asked one.acme.test
until_asked two.acme.test
echo "a certificate for both names, HTTP/$(asked one.acme.test)"
[ "$(stat -c %a "$work/data/acme/key.pem")" = 600 ] || fail "others may read the key"
stop first
stop pebble
serve second env FERROBASE_DEV=true "$binary" serve
until_asked one.acme.test
grep -q "there is a new certificate" "$work/second.log" && fail "another certificate was asked for"
echo "kept over a restart"
stop second

[ "$(id -u)" = 0 ] || { echo "not root: the rest is left out"; exit 0; }
# A free port that only root may open.
for secure in $(seq 1023 -1 900); do (exec 3<>"/dev/tcp/127.0.0.1/$secure") 2>/dev/null || break; done
rm -rf "$work/data"
"$binary" keys generate >"$work/keys.env"
pebble "$secure" 60
serve third bash -c 'set -a; . "$1"; set +a; SITE_URL=https://one.acme.test FERROBASE_MAIL=drop exec "$2" serve' - "$work/keys.env" "$binary"
until_asked one.acme.test
grep -q "dropped root's rights" "$work/third.log" || fail "the server is still root"
owner=$(stat -c %U "$work/data/acme/key.pem")
[ "$owner" != root ] && [ "$(ps -o user= -p "${started[third]}")" = "$owner" ] || fail "the key is of $owner"
serial() {
  openssl s_client -connect "127.0.0.1:$secure" -servername one.acme.test </dev/null 2>/dev/null | openssl x509 -noout -serial
}
before=$(serial)
[ -n "$before" ] || fail "no certificate at port $secure"
for _ in $(seq 180); do
  [ "$(serial)" = "$before" ] || break
  sleep 0.5
done
[ "$(serial)" != "$before" ] || fail "the certificate was not renewed"
asked two.acme.test >/dev/null || fail "the new certificate is not served"
echo "on port $secure as $owner, renewed after root's rights were given up"
