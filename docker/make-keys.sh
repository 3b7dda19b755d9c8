#!/bin/sh
# Makes this installation's keys once, in the volume /secrets; later runs leave them as they are.
set -eu
umask 077
keys=/secrets/keys.env
if [ ! -s "$keys" ]; then
  ferrobase keys generate > "$keys.new"
  sed -n 's/^POSTGRES_PASSWORD=//p' "$keys.new" | tr -d '\n' > /secrets/postgres_password
  # Renamed last: a run that was interrupted begins again.
  mv "$keys.new" "$keys"
  echo "new keys are in the volume 'secrets'; 'docker compose exec ferrobase serve.sh keys show' prints the API keys"
fi
