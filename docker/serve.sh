#!/bin/sh
# Runs a command of ferrobase (default: serve) with the keys of /secrets and the database of compose.yaml.
set -eu
if [ -r /secrets/keys.env ]; then
  set -a
  . /secrets/keys.env
  set +a
fi
if [ -z "${DATABASE_URL:-}" ] && [ -n "${POSTGRES_PASSWORD:-}" ]; then
  export DATABASE_URL="postgresql://postgres:$POSTGRES_PASSWORD@${POSTGRES_HOST:-db}:5432/postgres"
fi
exec ferrobase "${@:-serve}"
