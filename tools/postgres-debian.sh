#!/usr/bin/env bash
# Installs Debian's PostgreSQL 18 with PostGIS, hypopg, http and others below tools/postgres/debian, for Linux on x86-64: with its own C library and
# its libraries beside it, so that it runs on older systems too. Nothing is installed into the system, and no rights are needed.
# `ferrobase start` uses it where PG_BIN_DIR names its programs, which this script prints.
#
# The packages are those of Debian unstable today, as Debian has signed them; `--again` fetches them again.
set -euo pipefail
cd "$(dirname "$0")/postgres"

fail() { echo "postgres-debian.sh: $1" >&2; exit 1; }
extensions=(address-standardizer http hypopg partman pgrouting pgtap pgvector plpgsql-check postgis-3 postgis-tiger-geocoder rum)
target=$PWD/debian
bin=$target/usr/lib/postgresql/18/bin
[ "${1:-}" != --again ] || rm -rf "$target"
if [ -x "$bin/postgres" ]; then echo "$bin"; exit 0; fi
[ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] || fail "the packages are for Linux on x86-64"
for tool in apt-get dpkg-deb; do command -v "$tool" >/dev/null || fail "'$tool' is missing: this needs a Debian or Ubuntu"; done
key=/usr/share/keyrings/debian-archive-keyring.gpg
site=$(apt-get indextargets --format '$(ORIGIN) $(REPO_URI)' 2>/dev/null | sed -n 's/^Debian //p' | grep -v -- -security | head -n 1)
[ -n "$site" ] && [ -e "$key" ] || fail "this is no Debian with package lists ('apt-get update')"

work=$(mktemp -d)
trap 'rm -rf "$work" "$target.partial"' EXIT
chmod 755 "$work"
mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/root"
: >"$work/status"
echo "deb [signed-by=$key] $site unstable main" >"$work/unstable.list"
# With lists and a state of their own: as if nothing were installed.
apt=(apt-get -qq -o Dir::Etc::sourcelist="$work/unstable.list" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$work/lists"
  -o Dir::State::status="$work/status" -o Dir::Cache="$work/cache" -o Debug::NoLocking=true -o APT::Sandbox::User=
  -o APT::Architecture=amd64 -o APT::Install-Recommends=false -o Acquire::Languages=none
  -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false)
"${apt[@]}" update
"${apt[@]}" install -y --download-only "${extensions[@]/#/postgresql-18-}" >/dev/null
for package in "$work"/cache/archives/*.deb; do dpkg-deb -x "$package" "$work/root"; done

# What is needed of it: PostgreSQL's own tree, the data of PROJ, and the libraries that these name, with the C library.
root=$work/root
from=$root/usr/lib/postgresql/18
rm -rf "$target.partial"
to=$target.partial/usr/lib/postgresql/18
mkdir -p "$to/bin" "$to/programs" "$target.partial/usr/share/postgresql" "$target.partial/lib"
cp -a "$root/usr/share/postgresql/18" "$target.partial/usr/share/postgresql/"
cp -a "$root/usr/share/proj" "$target.partial/usr/share/"
cp -a "$from/lib" "$to/"
# Rasters bring a hundred megabytes of formats along.
rm -rf "$to"/lib/bitcode "$to"/lib/pgxs "$to"/lib/postgis_raster* "$to"/lib/rtpostgis* "$to"/lib/postgis_sfcgal*
scripts=$target.partial/usr/share/postgresql/18/extension
rm -f "$scripts"/postgis_{raster,sfcgal}*
# Debian makes these names when it sets the package up.
for control in "$scripts"/*-3.control; do cp "$control" "${control%-3.control}.control"; done
cp -a "$from"/bin/{postgres,initdb,pg_ctl} "$to/programs/"
loader=$root/usr/lib64/ld-linux-x86-64.so.2
[ -e "$loader" ] || loader=$root/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2
libraries=$root/usr/lib/x86_64-linux-gnu
for file in "$to"/programs/* "$to"/lib/*.so; do
  "$loader" --library-path "$libraries:$libraries/blas:$libraries/lapack" --list "$file" 2>/dev/null || true
done | sed -n 's/.*=> \([^ ]*\) .*/\1/p' | sort -u | while read -r library; do
  case "$library" in "$root"/*) cp -L "$library" "$target.partial/lib/" ;; esac
done
cp -L "$loader" "$target.partial/lib/ld-linux-x86-64.so.2"
for program in postgres initdb pg_ctl; do
  cat >"$to/bin/$program" <<'SH'
#!/bin/sh
# Starts the program of this name with the C library that it was built for.
self=$(readlink -f "$0")
here=${self%/usr/lib/postgresql/18/bin/*}
PROJ_DATA=${PROJ_DATA:-$here/usr/share/proj} exec "$here/lib/ld-linux-x86-64.so.2" --library-path "$here/lib" --argv0 "$self" \
  "$here/usr/lib/postgresql/18/programs/${self##*/}" "$@"
SH
  chmod 755 "$to/bin/$program"
done
"$to/bin/postgres" --version >/dev/null || fail "the server does not start"
mv "$target.partial" "$target"
echo "$bin"
