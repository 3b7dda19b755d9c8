#!/usr/bin/env bash
# Removes the role switch from a copy of the server, and expects the policy oracle to fail.
set -euo pipefail
cd "$(dirname "$0")/.."
copy=target/mutants
rm -rf "$copy"
mkdir -p "$copy"
git ls-files -z | tar --null --files-from=- -cf - | tar -xf - -C "$copy"
for folder in tools/postgres/node_modules frontend/dist; do
  [ ! -e "$folder" ] || { rm -rf "${copy:?}/$folder"; ln -s "$PWD/$folder" "$copy/$folder"; }
done
statement=server/src/rest/sql/settings.rs
sed -i "s/set_config('role', /set_config('forgotten.role', /" "$copy/$statement"
if cmp -s "$statement" "$copy/$statement"; then
  echo "mutants-role: the role switch was not found in $statement" >&2
  exit 1
fi
# What is built beside the project's own must not pass for it: another profile gives it other names. The program alone
# has one name.
export CARGO_TARGET_DIR="$PWD/target"
trap 'rm -f target/debug/ferrobase' EXIT
others=(--config profile.dev.package.ferrobase.debug=false --config profile.dev.package.ferrobase-rest.debug=false)
test=(cargo test "${others[@]}" --manifest-path "$copy/Cargo.toml" --locked -p ferrobase --test all)
"${test[@]}" --no-run
log=target/mutants.log
if "${test[@]}" rest::policies::policies_hold -- --nocapture >"$log" 2>&1; then
  echo "mutants-role: the policy oracle did not notice that the role switch is gone" >&2
  exit 1
fi
grep -o '[0-9]* cases, .* differences' "$log" || { cat "$log" >&2; exit 1; }
echo "mutants-role: the policy oracle fails without the role switch, as it has to"
