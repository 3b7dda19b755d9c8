#!/usr/bin/env bash
# Prints the path of a Go program, building it through the Go proxy if missing.
#   tools/go-program.sh NAME PACKAGE@VERSION     (kept in TOOLS_DIR, default ~/.cache/ferrobase-tools)
set -euo pipefail
if command -v "$1"; then exit; fi
dir=${TOOLS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/ferrobase-tools}/go
if [ ! -x "$dir/$1" ]; then
  go=$(command -v go || echo /usr/local/go/bin/go)
  [ -x "$go" ] || { echo "go-program.sh: $1 needs Go" >&2; exit 2; }
  mkdir -p "$dir"
  GOBIN=$dir "$go" install "$2" >&2
fi
echo "$dir/$1"
