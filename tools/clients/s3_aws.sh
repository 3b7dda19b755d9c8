#!/usr/bin/env bash
# aws-cli at /storage/v1/s3: copies, syncs and removals. Run by tools/test-tools.sh with the path of `aws`.
set -euo pipefail
aws() { "$cli" --endpoint-url "$SUPABASE_URL/storage/v1/s3" "$@"; }
cli=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bucket=aws-$RANDOM$RANDOM

aws s3 mb "s3://$bucket" >/dev/null
mkdir -p "$work/in/deep/er"
echo hello >"$work/in/a b.txt"
echo below >"$work/in/deep/er/c+d.txt"
head -c 20000000 /dev/urandom >"$work/in/large.bin"
aws s3 sync "$work/in" "s3://$bucket/tree" --only-show-errors
# Existing files are not sent again.
[ -z "$(aws s3 sync "$work/in" "s3://$bucket/tree")" ]
aws s3 sync "s3://$bucket/tree" "$work/out" --only-show-errors
diff -r "$work/in" "$work/out"
aws s3 ls "s3://$bucket/tree/" | grep 'PRE deep/' >/dev/null
aws s3 mv "s3://$bucket/tree/a b.txt" "s3://$bucket/moved.txt" --only-show-errors
[ "$(aws s3 cp "s3://$bucket/moved.txt" -)" = hello ]
aws s3 cp "s3://$bucket/tree/large.bin" "s3://$bucket/copy.bin" --only-show-errors
aws s3api head-object --bucket "$bucket" --key copy.bin --query ContentLength --output text | grep -x 20000000 >/dev/null
aws s3api get-object --bucket "$bucket" --key copy.bin --range bytes=19999990- "$work/end" >/dev/null
cmp "$work/end" <(tail -c 10 "$work/in/large.bin")
aws s3 cp "s3://$bucket/copy.bin" "$work/copy" --only-show-errors
cmp "$work/copy" "$work/in/large.bin"
[ "$(aws s3api list-object-versions --bucket "$bucket" --prefix moved --query 'Versions[].VersionId' --output text)" = null ]
echo stream | aws s3 cp - "s3://$bucket/piped"
aws s3 presign "s3://$bucket/piped" | xargs curl -fsS | grep -x stream >/dev/null
! aws s3 ls "s3://none-$bucket" 2>"$work/error"
grep -q NoSuchBucket "$work/error"
aws s3 rm "s3://$bucket" --recursive --only-show-errors
aws s3 rb "s3://$bucket" >/dev/null
echo "$("$cli" --version | cut -d' ' -f1) ok"
