#!/usr/bin/env python3
"""Whether a run was judged as it may be, by its report.

    judged.py REPORT EXIT EXITS [passes=N] [inconclusive=BEGIN] [CLAIM...]

Of the checks but those skipped, `inconclusive=` asks that those whose ids begin so are inconclusive and no others. CLAIMs are
those of which checks may fail.
"""
import collections, json, sys

report, code, codes, *others = sys.argv[1:]
passes = next((int(word[7:]) for word in others if word.startswith("passes=")), 0)
inconclusive = next((word[13:] for word in others if word.startswith("inconclusive=")), None)
claims = [word for word in others if "=" not in word]
checks = json.load(open(report))["checks"]
counts = collections.Counter(check["verdict"] for check in checks)
counted = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
wrong = [one["id"] for one in checks if one["verdict"] == "fail" and one["claim"] not in claims]
if code not in codes.split(","):
    wrong.append(f"exit {code}, not {codes}")
if counts["pass"] < passes:
    wrong.append(f"fewer than {passes} pass")
if inconclusive:
    asked = [check for check in checks if check["verdict"] != "skip"]
    wrong += [one["id"] for one in asked if one["id"].startswith(inconclusive) != (one["verdict"] == "inconclusive")]
print(f"exit {code}: {counted}", *(["— WRONG:", ", ".join(wrong[:5])] if wrong else []))
sys.exit(bool(wrong))
