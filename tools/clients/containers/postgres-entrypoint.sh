#!/bin/bash
# The stand-in's entrypoint: what the official image's does for the settings in compose.yaml. Started as root it gives the
# folders to 'postgres' and goes on as that user; an empty folder becomes a cluster, which a temporary server on the socket
# alone prepares; then the server itself starts with the given arguments.
set -eo pipefail

if [ "$1" = postgres ] && [ "$(id -u)" = 0 ]; then
  mkdir -p "$PGDATA" /var/run/postgresql
  chmod 700 "$PGDATA"
  chmod 3775 /var/run/postgresql
  find /var/lib/postgresql /var/run/postgresql \! -user postgres -exec chown postgres '{}' +
  # The official one makes a password file readable the same way: it reads it before it gives up root.
  if [ -n "$POSTGRES_PASSWORD_FILE" ]; then
    POSTGRES_PASSWORD=$(cat "$POSTGRES_PASSWORD_FILE")
    export POSTGRES_PASSWORD
  fi
  unset POSTGRES_PASSWORD_FILE
  exec setpriv --reuid=postgres --regid=postgres --init-groups "$0" "$@"
fi

if [ "$1" = postgres ] && [ ! -s "$PGDATA/PG_VERSION" ]; then
  if [ -n "$POSTGRES_PASSWORD_FILE" ]; then POSTGRES_PASSWORD=$(cat "$POSTGRES_PASSWORD_FILE"); fi
  [ -n "$POSTGRES_PASSWORD" ] || { echo "Error: Database is uninitialized and superuser password is not specified." >&2; exit 1; }
  # shellcheck disable=SC2086 # several arguments, as in the official one
  initdb --username=postgres --pwfile=<(printf '%s\n' "$POSTGRES_PASSWORD") $POSTGRES_INITDB_ARGS
  printf '\nhost all all all scram-sha-256\n' >>"$PGDATA/pg_hba.conf"
  PGPASSWORD=$POSTGRES_PASSWORD pg_ctl -D "$PGDATA" -o "-c listen_addresses='' -p 5432" -w start
  pg_ctl -D "$PGDATA" -m fast -w stop
  echo "PostgreSQL init process complete; ready for start up."
fi
unset POSTGRES_PASSWORD PGPASSWORD POSTGRES_INITDB_ARGS
exec "$@"
