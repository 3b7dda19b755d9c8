#!/usr/bin/env python3
"""Compares what a replay of recorded answers came to with the list of known differences.

  auth_listed.py REPORT.json EXCEPTIONS.md [--all]

Ends with 1 when a scenario differs that the list does not name and, after a replay of all of them (`--all`), when
the list names one that does not differ any more.
"""
import json
import re
import sys

report, exceptions = sys.argv[1:3]
with open(report, encoding="utf-8") as file:
    causes = json.load(file)["causes"]
with open(exceptions, encoding="utf-8") as file:
    rows = [line for line in file if line.startswith("|")]
listed = set(re.findall(r"\b[a-z0-9_]+(?:-[a-z0-9_]+)*-[0-9a-f]{10}\b", "".join(row.split("|")[1] for row in rows)))
differs = {scenario: cause for cause, scenarios in causes.items() for scenario in scenarios}

problems = [f"{name} differs and is not listed: {differs[name]}" for name in sorted(differs.keys() - listed)]
if "--all" in sys.argv[3:]:
    problems += [f"{name} is listed and does not differ" for name in sorted(listed - differs.keys())]
for problem in problems:
    print(f"{exceptions}: {problem}", file=sys.stderr)
if not problems:
    print(f"every difference is listed ({len(differs)})")
sys.exit(1 if problems else 0)
