#!/usr/bin/env bash
# Checks everything that is built in for known vulnerabilities and licences: crates with cargo-deny (deny.toml), npm
# packages with `npm audit`. Fails on a finding, and also if it could not check, because an audit that did not run has
# found nothing.
#   tools/audit.sh                         ADVISORY_DB=FOLDER: a clone of RustSec's advisory-db, where no network leads to it
#   AUDIT_ONLY=rust|npm                    one of the two
set -uo pipefail
cd "$(dirname "$0")/.."
version=0.20.2
failed=0
say() { echo "audit: $1" >&2; }

rust() {
  if ! cargo deny --version 2>/dev/null | grep -q "cargo-deny"; then
    cargo install cargo-deny --version "$version" --locked --root target/tools || { say "cargo-deny cannot be installed"; return 1; }
    export PATH="$PWD/target/tools/bin:$PATH"
  fi
  if [ -n "${ADVISORY_DB:-}" ]; then
    [ -d "$ADVISORY_DB" ] || { say "there is no folder $ADVISORY_DB"; return 1; }
    # Used in place of the URL that the tool asks for.
    export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="url.file://$(realpath "$ADVISORY_DB").insteadOf"
    export GIT_CONFIG_VALUE_0=https://github.com/RustSec/advisory-db
    say "advisories of $(git -C "$ADVISORY_DB" log -1 --format=%cs), from $ADVISORY_DB"
  fi
  cargo deny --all-features check --hide-inclusion-graph licenses sources bans || return 1
  cargo deny --all-features check --hide-inclusion-graph advisories || {
    say "there are advisories, or the database of advisories could not be had (a clone of it, named by ADVISORY_DB, will do)"
    return 1
  }
}

npm_packages() {
  local folder code=0
  for folder in frontend tools/postgres tools/deno tools/diff; do
    # Only what reaches users: development packages stay on the developer's machine.
    if ! (cd "$folder" && npm audit --omit=dev --audit-level=moderate); then
      say "$folder: there are advisories, or the registry does not answer that question (a mirror may not)"
      code=1
    fi
  done
  return $code
}

case "${AUDIT_ONLY:-both}" in
  both) rust || failed=1; npm_packages || failed=1 ;;
  rust) rust || failed=1 ;;
  npm) npm_packages || failed=1 ;;
  *) say "AUDIT_ONLY is rust or npm"; exit 2 ;;
esac
[ "$failed" -eq 0 ] && say "nothing found"
exit "$failed"
