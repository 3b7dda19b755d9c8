#!/usr/bin/env bash
# Removes the check of rows from a copy of the server, and expects realtime's oracle to fail.
set -euo pipefail
cd "$(dirname "$0")/.."
copy=target/mutants
rm -rf "$copy"
mkdir -p "$copy"
git ls-files -z | tar --null --files-from=- -cf - | tar -xf - -C "$copy"
for folder in tools/postgres/node_modules frontend/dist; do
  [ ! -e "$folder" ] || { rm -rf "${copy:?}/$folder"; ln -s "$PWD/$folder" "$copy/$folder"; }
done
check=server/src/realtime/changes/deliver/send.rs
sed -i 's/Some(Sight::Unseen) | None => continue,/Some(Sight::Unseen) | None => Shown::Row,/' "$copy/$check"
if cmp -s "$check" "$copy/$check"; then
  echo "mutants-realtime: the check was not found in $check" >&2
  exit 1
fi
# What is built beside the project's own must not pass for it: another profile gives it other names. The program alone
# has one name.
export CARGO_TARGET_DIR="$PWD/target"
trap 'rm -f target/debug/ferrobase' EXIT
others=(--config profile.dev.package.ferrobase.debug=false --config profile.dev.package.ferrobase-realtime.debug=false)
test=(cargo test "${others[@]}" --manifest-path "$copy/Cargo.toml" --locked -p ferrobase --test all)
"${test[@]}" --no-run
log=target/mutants.log
if "${test[@]}" realtime::oracle -- --nocapture >"$log" 2>&1; then
  echo "mutants-realtime: the oracle did not notice that rows are not checked" >&2
  exit 1
fi
grep -o 'leaked: .*' "$log" | head -1 || { cat "$log" >&2; exit 1; }
echo "mutants-realtime: the oracle fails without the check, as it has to"
