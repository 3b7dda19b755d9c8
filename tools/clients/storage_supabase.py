"""supabase-py's storage: every method of it once. Run by tools/test-tools.sh."""

import os
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
assert "token=" in files.create_signed_url("a/one.txt", 60)["signedURL"]
assert len(files.create_signed_urls(["a/one.txt", "none"], 60)) == 2
signed = files.create_signed_upload_url("c/signed.txt")
files.upload_to_signed_url("c/signed.txt", signed["token"], b"signed", {"content-type": "text/plain"})
assert files.get_public_url("a/one.txt").startswith(os.environ["SUPABASE_URL"])
assert len(files.remove(["a/one.txt", "b/three.txt", "c/signed.txt"])) == 3
storage.empty_bucket(name)
storage.delete_bucket(name)
print("supabase-py", supabase.__version__, "ok")
