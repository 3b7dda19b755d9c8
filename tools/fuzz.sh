#!/usr/bin/env bash
# Fuzzes the parsers of untrusted bytes (request heads, the grammar of requests, tokens and the role claim's path, forms, resumable
# uploads, S3's signatures and chunks, WebSocket frames) for some seconds each. Fails if one panics.
#   tools/fuzz.sh [SECONDS] [TARGET …]
# Needs a nightly toolchain of Rust; cargo-fuzz is installed below target/. Earlier findings are tried again.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
shift || true
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(lenient request role_path tokens multipart tus chunks signature frames)

cargo +nightly --version >/dev/null 2>&1 || {
  echo "fuzz.sh: a nightly toolchain is missing: rustup toolchain install nightly --profile minimal" >&2
  exit 1
}
version=0.13.2
if ! target/tools/bin/cargo-fuzz --version 2>/dev/null | grep -q " $version$"; then
  cargo install cargo-fuzz --version "$version" --locked --root target/tools
fi
export PATH="$PWD/target/tools/bin:$PATH"
# The server's dependency versions.
cp Cargo.lock server/fuzz/Cargo.lock
for target in "${targets[@]}"; do
  corpus=target/fuzz/corpus/$target
  mkdir -p "$corpus"
  # No address sanitizer: the code under test has no unsafe part.
  cargo +nightly fuzz run --dev --sanitizer none --fuzz-dir server/fuzz --target-dir target/fuzz "$target" \
    "$corpus" "server/fuzz/seeds/$target" -- -max_total_time="$seconds" -max_len=2048 -rss_limit_mb=2048 -print_final_stats=1
done
