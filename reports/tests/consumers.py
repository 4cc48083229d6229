#!/usr/bin/env python3
"""Reads a JUnit report with real consumers and holds their counts to those of the JSON report.

    python consumers.py REPORT.xml REPORT.json [...more pairs]

Needs junitparser and junit2html; with lxml installed, junitparser is tried both ways. Exit 0: all agree.
1: a finding. 2: usage, or a consumer that is not installed.
"""

import json
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

# Outcome word -> the one result child of its testcase (None: passed).
CHILD = {
    "pass": None,
    "fail": "failure",
    "unexpected-pass": "failure",
    "error": "error",
    "tolerated": "skipped",
    "expected-fail": "skipped",
    "exempt": "skipped",
    "not-declared": "skipped",
    "not-run": "skipped",
}
RESULTS = ("failure", "error", "skipped")
ATTRIBUTES = {
    "testsuites": {"name"},
    "testsuite": {"name", "tests", "failures", "errors", "skipped", "time", "timestamp", "hostname"},
    "testcase": {"classname", "name", "time"},
    "property": {"name", "value"},
    "failure": {"type", "message"},
    "error": {"type", "message"},
    "skipped": {"type", "message"},
}
# What may stand in what: stricter than the Jenkins xUnit schema, so it implies it.
CHILDREN = {
    "testsuites": {"testsuite"},
    "testsuite": {"properties", "testcase"},
    "properties": {"property"},
    "testcase": {*RESULTS, "system-out"},
}
XUNIT_TIME = re.compile(r"[0-9]+\.[0-9]{3}")
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")

# Run in a process of its own: whether junitparser uses lxml is decided when it is imported.
JUNITPARSER = r"""
import json, sys
if sys.argv[2] == "without":
    sys.modules["lxml"] = None
import junitparser
from junitparser import JUnitXml
if sys.argv[2] == "with":
    assert "lxml" in sys.modules, "lxml was not used"
words = {"Failure": "failure", "Error": "error", "Skipped": "skipped"}
xml = JUnitXml.fromfile(sys.argv[1])
told, cases = [], 0
for suite in xml:
    told.append([suite.tests, suite.failures, suite.errors, suite.skipped])
    for case in suite:
        cases += 1
        results = [words[type(result).__name__] for result in case.result]
        assert len(results) <= 1, (case.name, results)
        assert case.name and case.classname and case.time is not None
        told.append(results[0] if results else "pass")
json.dump({"told": told, "cases": cases}, sys.stdout)
"""


def expected_counts(report):
    """The JSON summary through the mapping; it must be that of the JSON rows."""
    rows = Counter(row["outcome"] for row in report["clauses"])
    for word, count in report["summary"].items():
        assert rows[word] == count, f"JSON summary says {count} {word}, its rows hold {rows[word]}"
    counts = Counter()
    for word, count in report["summary"].items():
        counts[CHILD[word] or "pass"] += count
    if not report["clauses"]:
        # A run without cases has one explicit testcase that says why.
        counts["error"] += 1
    return +counts


def check_dialect(path, report):
    """Structure, attributes and rows, read with the standard library's strict parser."""
    root = ElementTree.parse(path).getroot()
    assert root.tag == "testsuites" and len(root) > 0, "no suites"
    counts, names, ids = Counter(), set(), []
    for element in root.iter():
        assert set(element.attrib) == ATTRIBUTES.get(element.tag, set()), (element.tag, element.attrib)
        assert all(element.attrib.values()), f"empty attribute: {element.tag} {element.attrib}"
        children = {child.tag for child in element}
        assert children <= CHILDREN.get(element.tag, set()), (element.tag, children)
    for suite in root:
        here = Counter()
        assert TIMESTAMP.fullmatch(suite.get("timestamp")), suite.get("timestamp")
        for case in suite.findall("testcase"):
            assert XUNIT_TIME.fullmatch(case.get("time")), case.get("time")
            results = [child for child in case if child.tag in RESULTS]
            assert len(results) <= 1, f"{case.get('name')}: {len(results)} results"
            for result in results:
                assert (result.text or "").strip(), f"{case.get('name')}: no text"
            here[results[0].tag if results else "pass"] += 1
            key = (case.get("classname"), case.get("name"))
            assert key not in names, f"twice: {key}"
            names.add(key)
            ids.append(case.get("name"))
        told = [int(suite.get(key)) for key in ("tests", "failures", "errors", "skipped")]
        counted = [sum(here.values()), here["failure"], here["error"], here["skipped"]]
        assert told == counted, f"{suite.get('name')}: says {told}, holds {counted}"
        counts += here
    wanted = Counter(row["id"] for row in report["clauses"]) or Counter(["storeproof/nothing-judged"])
    # Names that XML cannot carry are cleaned; all others are the case ids.
    plain = re.compile(r"[\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]{1,1000}")
    missing = [name for name in wanted if plain.fullmatch(name) and name not in ids]
    assert not missing, f"no testcase for {missing[:3]}"
    assert len(ids) == sum(wanted.values()), f"{len(ids)} testcases for {sum(wanted.values())} rows"
    return counts


def read_junitparser(path, lxml):
    command = [sys.executable, "-c", JUNITPARSER, str(path), lxml]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, f"junitparser {lxml} lxml:\n{run.stderr[-2000:]}"
    told = json.loads(run.stdout)["told"]
    counts = Counter(item for item in told if isinstance(item, str))
    suites = [item for item in told if isinstance(item, list)]
    sums = [sum(column) for column in zip(*suites)]
    counted = [sum(counts.values()), counts["failure"], counts["error"], counts["skipped"]]
    assert sums == counted, f"junitparser {lxml} lxml: suites say {sums}, cases {counted}"
    return counts


def read_junit2html(path):
    """Its model, and its command line: it must also draw the page."""
    from junit2htmlreport import parser

    counts = Counter()
    words = {"passed": "pass", "failed": "failure", "skipped": "skipped", "error": "error"}
    for suite in parser.Junit(filename=str(path)).suites:
        for case in suite.all():
            counts[words[case.outcome()]] += 1
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        command = [sys.executable, "-m", "junit2htmlreport", str(path), str(page)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        assert run.returncode == 0 and page.stat().st_size > 0, f"junit2html:\n{run.stderr[-2000:]}"
    # It has no `error` of its own: an error is a failure to it.
    return counts


def folded(counts):
    """Counts as a consumer sees them that knows no errors."""
    return +Counter(
        {
            "pass": counts["pass"],
            "failure": counts["failure"] + counts["error"],
            "skipped": counts["skipped"],
        }
    )


def has_lxml():
    try:
        import lxml  # noqa: F401
    except ImportError:
        return False
    return True


def check(xml, report_path):
    report = json.loads(report_path.read_text(encoding="utf-8"))
    expected = expected_counts(report)
    seen = {"strict XML": check_dialect(xml, report)}
    seen["junitparser without lxml"] = read_junitparser(xml, "without")
    if has_lxml():
        seen["junitparser with lxml"] = read_junitparser(xml, "with")
    for reader, counts in seen.items():
        assert +counts == expected, f"{reader} reads {dict(counts)}, JSON says {dict(expected)}"
    counts = read_junit2html(xml)
    assert folded(counts) == folded(expected), f"junit2html reads {dict(counts)}, JSON says {dict(expected)}"
    total = sum(expected.values())
    print(f"ok {xml}: {total} cases {dict(expected)}; {', '.join(seen)}, junit2html agree")


def main(arguments):
    if not arguments or len(arguments) % 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        import junit2htmlreport  # noqa: F401
        import junitparser  # noqa: F401
    except ImportError as missing:
        print(f"not installed: {missing}", file=sys.stderr)
        return 2
    failures = 0
    for xml, report in zip(arguments[::2], arguments[1::2]):
        try:
            check(Path(xml), Path(report))
        except (AssertionError, ElementTree.ParseError, KeyError, ValueError, OSError) as error:
            failures += 1
            print(f"NOT ok {xml}: {type(error).__name__}: {error}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
