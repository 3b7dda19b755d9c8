#!/usr/bin/env python3
"""Replays recorded answers of PostgREST against `ferrobase serve --only rest`, group by group.

  ORACLE_DIR=<folder> rest.py [GROUP …] [--failures N] [--by-tag]

ORACLE_DIR holds schema.sql, config.json, open.jsonl.gz and replay.py. Other settings, by environment:
  ORACLE_DB_URI    the database with schema.sql in it, as the login role oracle_authenticator
                   (default postgresql://oracle_authenticator:oracle@127.0.0.1:5432/oracle)
  ORACLE_PORT      where the server listens (default 55141)
  FERROBASE        the binary (default target/debug/ferrobase)
Exits 1 if any case differs that is not listed in EXPECTED; causes are in docs/rest-exceptions.md. Standard library
only.
"""
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

# Recorded answers that differ on purpose, by cause.
EXPECTED = {
    "a blank behind the value of Authorization": """
        default-1001-1345 default-1001-4116 jwt-aud-1001-27 jwt-aud-1001-134 jwt-aud-1001-171 jwt-aud-1001-180
        jwt-aud-1001-259 role-claim-key-1001-400 role-claim-path-1001-61 role-claim-path-1001-469 no-anon-1001-96
        no-anon-1001-122 jwks-1001-77""",
    "the recorded server could not write a name to its log": "default-1001-1805 default-1001-4490 default-1001-8572",
}

ROOT = pathlib.Path(__file__).resolve().parents[3]


def wait_for(port, process):
    for _ in range(200):
        if process.poll() is not None:
            sys.exit(f"the server ended with code {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), 0.2).close()
            return
        except OSError:
            time.sleep(0.05)
    sys.exit("the server does not listen")


def run_group(name, settings, folder, extra):
    port = int(os.environ.get("ORACLE_PORT", "55141"))
    binary = os.environ.get("FERROBASE", str(ROOT / "target/debug/ferrobase"))
    uri = os.environ.get("ORACLE_DB_URI", "postgresql://oracle_authenticator:oracle@127.0.0.1:5432/oracle")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PGRST_")}
    environment |= settings | {
        "PGRST_DB_URI": uri,
        "PGRST_SERVER_HOST": "127.0.0.1",
        "PGRST_SERVER_PORT": str(port),
        "RUST_LOG": os.environ.get("RUST_LOG", "warn"),
    }
    server = subprocess.Popen([binary, "serve", "--only", "rest"], env=environment)
    try:
        wait_for(port, server)
        replay = [sys.executable, str(folder / "replay.py"), "--base-url", f"http://127.0.0.1:{port}"]
        replay += ["--file", str(folder / "open.jsonl.gz"), "--group", name, *extra]
        with tempfile.NamedTemporaryFile("r", suffix=".json") as result:
            subprocess.run([*replay, "--json", result.name], check=True)
            causes = json.load(result)["causes"]
        different = {case for cases in causes.values() for case in cases}
        return different - {case for cases in EXPECTED.values() for case in cases.split()}
    finally:
        server.terminate()
        server.wait(30)


def main():
    folder = os.environ.get("ORACLE_DIR")
    if not folder:
        sys.exit("ORACLE_DIR is not set: the folder with the recorded answers")
    folder = pathlib.Path(folder)
    groups = json.loads((folder / "config.json").read_text())["groups"]
    words, extra = [], []
    arguments = iter(sys.argv[1:])
    for argument in arguments:
        if argument in groups:
            words.append(argument)
        else:
            extra.append(argument)
    if not any(word.startswith("--failures") for word in extra):
        extra += ["--failures", "0"]
    wrong = {name: run_group(name, groups[name], folder, extra) for name in words or groups}
    unexpected = sorted(case for cases in wrong.values() for case in cases)
    print(f"{len(wrong)} groups, {len(unexpected)} unexpected differences" + "".join(f"\n  {case}" for case in unexpected))
    sys.exit(1 if unexpected else 0)


if __name__ == "__main__":
    main()
