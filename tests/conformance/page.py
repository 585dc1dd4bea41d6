"""The page ``docs/conformance.md``: the table of rules with what their tests came to."""
from __future__ import annotations

import re

from .table import TESTS, Chapter, Rule

PAGE = TESTS.parent / "docs" / "conformance.md"

HEAD = """# Conformance

Every rule of the language, the tests that hold it, and how many of their cases passed. Written by `python -m tests.conformance`,
which runs these tests; references are relative to `tests/`. A case counts for each rule that names it.

"""


def render(chapters: tuple[Chapter, ...], outcomes: dict[str, list[str]]) -> str:
    """The page; ``outcomes`` has what the cases of each reference came to."""
    rules = [r for c in chapters for r in c.rules]
    lines = [HEAD + f"{len(rules)} rules: {_count([o for r in rules for t in r.tests for o in outcomes[t]])}.\n"]
    for c in chapters:
        lines += [f"\n## {c.title}\n", "| rule | says | tests | cases |", "| --- | --- | --- | --- |"]
        lines += [_row(r, [o for t in r.tests for o in outcomes[t]]) for r in c.rules]
    return "\n".join(lines) + "\n"


def listed(page: str) -> list[tuple[str, str]]:
    """(id, words) of each rule on a page."""
    rows = re.findall(r"^\| ([^|]+?) \| ((?:[^|\\]|\\.)+?) \| .*\|$", page, re.M)
    return [(name, words.replace("\\|", "|")) for name, words in rows if name not in ("rule", "---")]


def _row(rule: Rule, outcomes: list[str]) -> str:
    by_file: dict[str, list[str]] = {}
    for t in rule.tests:
        file, name = t.removeprefix("tests/").split("::", 1)
        by_file.setdefault(file.removesuffix(".py"), []).append(name.removeprefix("test_"))
    tests = "; ".join(f"`{file}`: " + ", ".join(f"`{_cell(n)}`" for n in names) for file, names in by_file.items())
    return f"| {rule.id} | {_cell(rule.says)} | {tests} | {_count(outcomes)} |"


def _count(outcomes: list[str]) -> str:
    """``12 passed``, with what failed or was skipped after it."""
    return ", ".join(f"{outcomes.count(o)} {o}" for o in ("passed", "failed", "skipped") if o == "passed" or o in outcomes)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
