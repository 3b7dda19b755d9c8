#!/usr/bin/env bash
# rclone at /storage/v1/s3: sync, check, server-side copies and moves, large files in parts, a purge. Run by tools/test-tools.sh with
# the path of `rclone`.
set -euo pipefail
cli=$1
# rclone reads it for every S3 store and fails; ours uses plain HTTP.
unset AWS_CA_BUNDLE
export RCLONE_CONFIG=/dev/null RCLONE_CONFIG_STORE_TYPE=s3 RCLONE_CONFIG_STORE_PROVIDER=Other RCLONE_CONFIG_STORE_REGION=local
export RCLONE_CONFIG_STORE_ENDPOINT=$SUPABASE_URL/storage/v1/s3 RCLONE_CONFIG_STORE_FORCE_PATH_STYLE=true
export RCLONE_CONFIG_STORE_ACCESS_KEY_ID=$AWS_ACCESS_KEY_ID RCLONE_CONFIG_STORE_SECRET_ACCESS_KEY=$AWS_SECRET_ACCESS_KEY
rclone() { "$cli" --quiet "$@"; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bucket=rclone-$RANDOM$RANDOM

rclone mkdir "store:$bucket"
mkdir -p "$work/in/deep/er"
echo hello >"$work/in/a b.txt"
echo below >"$work/in/deep/er/c+d.txt"
: >"$work/in/empty"
head -c 20000000 /dev/urandom >"$work/in/large.bin"
rclone sync "$work/in" "store:$bucket/tree" --s3-upload-cutoff 6M --s3-chunk-size 6M
rclone check "$work/in" "store:$bucket/tree" --download
# Existing files are not sent again: times and sizes are read back.
[ -z "$(rclone sync "$work/in" "store:$bucket/tree" --s3-upload-cutoff 6M --s3-chunk-size 6M -v 2>&1 | grep -i copied || true)" ]
rclone sync "store:$bucket/tree" "$work/out"
diff -r "$work/in" "$work/out"
rclone moveto "store:$bucket/tree/a b.txt" "store:$bucket/moved.txt"
[ "$(rclone cat "store:$bucket/moved.txt")" = hello ]
[ "$(rclone cat "store:$bucket/moved.txt" --offset 1 --count 2)" = el ]
rclone copyto "store:$bucket/tree/large.bin" "store:$bucket/copy.bin"
[ "$(rclone size "store:$bucket" --json | tr -dc '0-9,' | cut -d, -f1)" = 5 ]
rclone lsf "store:$bucket/tree" | grep -x 'deep/' >/dev/null
echo stream | rclone rcat "store:$bucket/piped"
rclone deletefile "store:$bucket/piped"
rm "$work/in/deep/er/c+d.txt"
rclone sync "$work/in" "store:$bucket/tree"
! rclone cat "store:$bucket/tree/deep/er/c+d.txt" 2>/dev/null
# It asks for versions, of which each object has one.
rclone purge "store:$bucket/tree"
[ -z "$(rclone lsf "store:$bucket/tree" 2>/dev/null)" ]
rclone delete "store:$bucket"
rclone rmdir "store:$bucket"
! rclone lsf "store:$bucket" 2>/dev/null
echo "$("$cli" version | head -n 1) ok"
