"""supabase-py's storage: every method of it once. Run by tools/test-tools.sh."""

import os
import tempfile
import urllib.request
import uuid

import supabase

KEY = os.environ.get(
    "SUPABASE_SERVICE_ROLE_KEY",
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzdXBhYmFzZS1kZW1vIiwicm9sZSI6InNlcnZpY2Vfcm9sZSIsImV4cCI6MTk4MzgxMjk5Nn0"
    ".EGIM96RAZx35lJzdJsyH-qQwv8Hdp7fsn3W0YpN81IU",
)
storage = supabase.create_client(os.environ["SUPABASE_URL"], KEY).storage
name = "py-" + uuid.uuid4().hex[:8]

storage.create_bucket(name, options={"public": True, "file_size_limit": 1000, "allowed_mime_types": ["text/plain"]})
assert storage.get_bucket(name).public is True
assert name in [bucket.name for bucket in storage.list_buckets()]
storage.update_bucket(name, options={"public": True})
files = storage.from_(name)
files.upload("a/one.txt", b"one", {"content-type": "text/plain", "cache-control": "60", "upsert": "false"})
try:
    files.upload("a/one.txt", b"again", {"content-type": "text/plain"})
    raise AssertionError("a duplicate was expected")
except Exception as error:
    assert "already exists" in str(error), error
files.update("a/one.txt", b"new", {"content-type": "text/plain"})
assert files.download("a/one.txt") == b"new"
assert files.exists("a/one.txt")
assert files.info("a/one.txt")["size"] == 3
files.copy("a/one.txt", "a/two.txt")
files.move("a/two.txt", "b/three.txt")
assert [f["name"] for f in files.list("a")] == ["one.txt"]


def fetched(url, headers=None):
    return urllib.request.urlopen(urllib.request.Request(url, headers=headers or {})).read()


link = files.create_signed_url("a/one.txt", 60)["signedURL"]
assert fetched(link) == b"new" and fetched(link, {"range": "bytes=1-"}) == b"ew"
many = files.create_signed_urls(["a/one.txt", "none"], 60)
assert [bool(one["signedURL"]) for one in many] == [True, False] and fetched(many[0]["signedURL"]) == b"new"
assert fetched(files.get_public_url("a/one.txt")) == b"new"
assert files.download("b/three.txt") == b"new" and not files.exists("a/two.txt")
signed = files.create_signed_upload_url("c/signed.txt")
files.upload_to_signed_url("c/signed.txt", signed["token"], b"signed", {"content-type": "text/plain"})
assert files.download("c/signed.txt") == b"signed"
assert len(files.remove(["a/one.txt", "b/three.txt", "c/signed.txt"])) == 3
assert files.list("a") == [] and not files.exists("a/one.txt")

# Large enough to be sent in pieces from a file.
storage.update_bucket(name, options={"public": True, "file_size_limit": None, "allowed_mime_types": None})
large = os.urandom(20_000_000)
with tempfile.NamedTemporaryFile() as source:
    source.write(large)
    source.flush()
    files.upload("large.bin", source.name, {"content-type": "application/octet-stream"})
assert files.download("large.bin") == large
storage.empty_bucket(name)
storage.delete_bucket(name)
print("supabase-py", supabase.__version__, "ok")
