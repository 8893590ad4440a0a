"""Compares what readers make of a run's files with its report.json: compare.py FOLDER, which has what Surefire and
TestGrid read in the files `surefire` and `testgrid`. Prints each difference, and exits with 1 if there is any."""

import collections
import datetime
import json
import pathlib
import sys

from junitparser import Error, Failure, Skipped
from junitparser.xunit2 import FlakyFailure, JUnitXml, RerunFailure
from prometheus_client.parser import text_string_to_metric_families

folder = pathlib.Path(sys.argv[1])
report = json.loads((folder / "report.json").read_text())
differences = []


def compare(what, expected, read):
    if expected != read:
        differences.append(f"{what}: expected {expected!r}, read {read!r}")


def outcome(check):
    if check["waived"]:
        return "skipped"
    if check["verdict"] == "fail" or check["weight"] == "against":
        return "failed"
    return {"inconclusive": "error", "unfinished": "error", "skip": "skipped"}.get(check["verdict"], "passed")


# What each test case has to be: its name, outcome, seconds and message
cases = [(c["id"], outcome(c), (c["took-ms"] or 0) / 1000, c["sentence"]) for c in report["checks"]]
cases += [(w["check"], "skipped", 0, "") for w in report["waivers"] if w["state"] != "applied"]
if report["reservations"]:
    why = "; ".join(one["sentence"] for one in report["reservations"])
    cases.append(("the run ended as planned", "error", 0, why))


def told(reader, read):
    """Compares the test cases that a reader has found; one that tells no errors from failures has `bad` ones."""
    read = sorted(read)
    names, others = (collections.Counter(case[0] for case in both) for both in (cases, read))
    compare(f"{reader}: names without the common ones", sorted(names - others), sorted(others - names))
    for (name, outcome, seconds, message), (_, seen, took, said) in zip(sorted(cases), read if names == others else []):
        bad = outcome in ("failed", "error")
        compare(f"{reader}: {name}", outcome, outcome if bad and seen == "bad" else seen)
        compare(f"{reader}: seconds of {name}", round(seconds, 3), round(float(took), 3))
        # TestGrid adds the description, and keeps both ends
        begin = said.split("...")[0].split("\n")[0]
        if bad and not (begin and message.startswith(begin) if seen == "bad" else message == said):
            compare(f"{reader}: message of {name}", message, said)


def of_file(name):
    fields = (folder / name).read_text(encoding="utf-8").split("\0")[:-1]
    return list(zip(*[iter(fields)] * 4))


junit = JUnitXml.fromfile(str(folder / "junit_winconform.xml"))
attempts = {
    (check["id"], one["number"]): (one["began"], one["took-ms"])
    for check in report["checks"]
    for one in check["attempted"]
}
found, timed = [], 0
for suite in junit:
    for case in suite:
        result = case.result[0] if case.result else None
        kinds = {Failure: "failed", Error: "error", Skipped: "skipped", type(None): "passed"}
        found.append((case.name, kinds[type(result)], case.time or 0, result.message if result else ""))
        for again in [*case.iterchildren(RerunFailure), *case.iterchildren(FlakyFailure)]:
            attributes = again._elem.attrib
            if "time" in attributes:
                number = int(again.message.removeprefix("attempt ").split(":")[0])
                began, took = attempts[case.name, number]
                compare(f"seconds of attempt {number} of {case.name}", took / 1000, float(attributes["time"]))
                at = [datetime.datetime.fromisoformat(one) for one in (began, attributes["timestamp"])]
                compare(f"begin of attempt {number} of {case.name}", at[0].replace(microsecond=0), at[1].replace(microsecond=0))
                timed += 1
told("junitparser", found)
counts = collections.Counter(case[1] for case in cases)
totals = (len(cases), counts["failed"], counts["error"], counts["skipped"])
skipped = sum(suite.skipped for suite in junit)
compare("junitparser: totals", totals, (junit.tests, junit.failures, junit.errors, skipped))
told("Surefire", of_file("surefire"))
told("TestGrid", of_file("testgrid"))

metrics = collections.Counter()
for family in text_string_to_metric_families((folder / "metrics.prom").read_text()):
    for sample in family.samples:
        metrics[family.name] += sample.value
for name, value in [("winconform_checks", len(report["checks"])), ("winconform_run_exit_code", report["exit"]["code"])]:
    compare(f"prometheus_client: {name}", value, metrics[name])

for difference in differences[:20]:
    print(difference[:1000])
if differences:
    sys.exit(f"{folder.name}: {len(differences)} differences")
print(f"{folder.name}: {totals[0]} test cases, {totals[1]} failures, {totals[2]} errors, {timed} timed reruns: all agree")
