"""boto3 at /storage/v1/s3, with the checksums it sends by default. Run by tools/test-tools.sh."""

import io
import os
import urllib.error
import urllib.request
import uuid

import boto3
import botocore.config
import botocore.exceptions
from boto3.s3.transfer import TransferConfig

s3 = boto3.client(
    "s3",
    endpoint_url=os.environ["SUPABASE_URL"] + "/storage/v1/s3",
    config=botocore.config.Config(s3={"addressing_style": "path"}, retries={"max_attempts": 1}),
)
bucket = "boto-" + uuid.uuid4().hex[:8]


def refused(call, code):
    try:
        call()
    except botocore.exceptions.ClientError as error:
        assert error.response["Error"]["Code"] == code, error.response
        return
    raise AssertionError(f"{code} was expected")


s3.create_bucket(Bucket=bucket)
assert bucket in [b["Name"] for b in s3.list_buckets()["Buckets"]]
s3.head_bucket(Bucket=bucket)
assert s3.get_bucket_location(Bucket=bucket)["LocationConstraint"] == "local"

for algorithm in ["CRC32", "SHA1", "SHA256"]:
    s3.put_object(Bucket=bucket, Key=f"sums/{algorithm} & co", Body=b"hello", ChecksumAlgorithm=algorithm)
put = s3.put_object(Bucket=bucket, Key="a+b/ä.txt".replace("ä", "a"), Body=b"hello", ContentType="text/plain", Metadata={"who": "me"})
got = s3.get_object(Bucket=bucket, Key="a+b/a.txt")
assert got["Body"].read() == b"hello" and got["Metadata"] == {"who": "me"} and got["ETag"] == put["ETag"]
assert s3.get_object(Bucket=bucket, Key="a+b/a.txt", Range="bytes=1-2")["Body"].read() == b"el"
refused(lambda: s3.get_object(Bucket=bucket, Key="none"), "NoSuchKey")
refused(lambda: s3.head_object(Bucket=bucket, Key="none"), "404")
refused(lambda: s3.put_object(Bucket=bucket, Key="a+b/a.txt", Body=b"x", IfNoneMatch="*"), "PreconditionFailed")

large = os.urandom(20 * 1024 * 1024)
pieces = TransferConfig(multipart_threshold=6 << 20, multipart_chunksize=6 << 20)
s3.upload_fileobj(io.BytesIO(large), bucket, "large", Config=pieces)
back = io.BytesIO()
s3.download_fileobj(bucket, "large", back, Config=pieces)
assert back.getvalue() == large
s3.copy({"Bucket": bucket, "Key": "large"}, bucket, "copy", Config=pieces)
assert s3.head_object(Bucket=bucket, Key="copy")["ContentLength"] == len(large)

begun = s3.create_multipart_upload(Bucket=bucket, Key="given up")
s3.upload_part(Bucket=bucket, Key="given up", UploadId=begun["UploadId"], PartNumber=1, Body=b"x")
assert len(s3.list_parts(Bucket=bucket, Key="given up", UploadId=begun["UploadId"])["Parts"]) == 1
assert [u["Key"] for u in s3.list_multipart_uploads(Bucket=bucket)["Uploads"]] == ["given up"]
s3.abort_multipart_upload(Bucket=bucket, Key="given up", UploadId=begun["UploadId"])

pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, PaginationConfig={"PageSize": 2})
assert sorted(o["Key"] for page in pages for o in page.get("Contents", [])) == sorted(
    ["a+b/a.txt", "copy", "large", "sums/CRC32 & co", "sums/SHA1 & co", "sums/SHA256 & co"]
)
folders = s3.list_objects(Bucket=bucket, Delimiter="/")
assert [p["Prefix"] for p in folders["CommonPrefixes"]] == ["a+b/", "sums/"], folders

link = s3.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": "sums/SHA1 & co"}, ExpiresIn=60)
assert urllib.request.urlopen(link).read() == b"hello"
link = s3.generate_presigned_url("put_object", Params={"Bucket": bucket, "Key": "by link"}, ExpiresIn=60)
urllib.request.urlopen(urllib.request.Request(link, data=b"linked", method="PUT"))
assert s3.get_object(Bucket=bucket, Key="by link")["Body"].read() == b"linked"

# A browser form, signed by `generate_presigned_post`.
def submit(post, name, file):
    fields = {**post["fields"]}
    parts = [f'--X\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n'.encode() for k, v in fields.items()]
    parts.append(f'--X\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode() + file + b"\r\n--X--\r\n")
    kind = {"content-type": "multipart/form-data; boundary=X"}
    try:
        return urllib.request.urlopen(urllib.request.Request(post["url"], data=b"".join(parts), headers=kind)).status
    except urllib.error.HTTPError as error:
        return error.code


said = {"Content-Type": "text/plain", "x-amz-meta-who": "me", "success_action_status": "201"}
allowed = [{name: value} for name, value in said.items()] + [["content-length-range", 1, 1000]]
post = s3.generate_presigned_post(bucket, "forms/${filename}", Fields=said, Conditions=allowed, ExpiresIn=60)
assert submit(post, "a b.txt", b"by form") == 201
got = s3.get_object(Bucket=bucket, Key="forms/a b.txt")
assert got["Body"].read() == b"by form" and got["Metadata"] == {"who": "me"} and got["ContentType"] == "text/plain"
assert submit(post, "large", bytes(1001)) == 413
post["fields"]["key"] = "elsewhere"
assert submit(post, "a", b"x") == 403

versions = s3.list_object_versions(Bucket=bucket, Prefix="forms/")["Versions"]
assert [(v["Key"], v["VersionId"], v["IsLatest"]) for v in versions] == [("forms/a b.txt", "null", True)]
assert s3.get_bucket_versioning(Bucket=bucket)["Status"] == "Suspended"

keys = [{"Key": o["Key"]} for o in s3.list_objects_v2(Bucket=bucket)["Contents"]]
assert len(s3.delete_objects(Bucket=bucket, Delete={"Objects": keys})["Deleted"]) == len(keys)
s3.delete_bucket(Bucket=bucket)
refused(lambda: s3.list_objects_v2(Bucket=bucket), "NoSuchBucket")
print("boto3", boto3.__version__, "ok")
