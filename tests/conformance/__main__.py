"""``python -m tests.conformance``: run every test that the table names, in one pytest process, and write ``docs/conformance.md``.

Arguments go to pytest (``-n 2``). The exit status is that of pytest, or 1 when a reference names no test.
"""
from __future__ import annotations

import sys

import pytest

from .page import PAGE, render
from .rules import CHAPTERS
from .table import holds


class Results:
    """Counts what every node came to; with xdist the controller sees all reports."""

    def __init__(self):
        self.outcome: dict[str, str] = {}

    def pytest_runtest_logreport(self, report):
        if report.when == "call" or report.outcome != "passed":
            self.outcome[report.nodeid] = report.outcome


def main(arguments: list[str]) -> int:
    references = dict.fromkeys(t for c in CHAPTERS for r in c.rules for t in r.tests)
    functions = dict.fromkeys(t.split("[")[0] for t in references)
    results = Results()
    status = pytest.main([*arguments, *functions], plugins=[results])
    nodes: dict[str, list[str]] = {}
    for node in results.outcome:
        nodes.setdefault(node.split("[")[0], []).append(node)
    found = {t: [results.outcome[n] for n in nodes.get(t.split("[")[0], ()) if holds(t, n)] for t in references}
    PAGE.write_text(render(CHAPTERS, found), encoding="utf-8")
    for lost in (t for t, outcomes in found.items() if not outcomes):
        print(f"no test was run for {lost}")
        status = status or 1
    print(f"wrote {PAGE}")
    return int(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
