#!/usr/bin/env bash
# Checks the Debian package's systemd unit with systemd's own tools: whether it is valid, and how much the service may
# do. Needs no running systemd.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v systemd-analyze >/dev/null || { echo "test-unit: systemd-analyze is missing (Debian: apt-get install systemd)" >&2; exit 2; }
unit=packaging/debian/ferrobase.service
# From 0 (nothing) to 10 (everything); an unprotected service has 9.6. The threshold is in tenths.
systemd-analyze security --offline=true --threshold=20 --no-pager "$unit" | tail -3
# The program is not installed here, which must be the only error.
wrong=$(systemd-analyze verify "$unit" 2>&1 | grep "ferrobase.service" | grep -v "ferrobase is not executable" || true)
[ -z "$wrong" ] || { echo "$wrong" >&2; exit 1; }
