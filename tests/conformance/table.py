"""What a rule of the table is, and what its references to tests mean.

A reference is ``file.py::test_a,test_b`` below ``tests/``: every case of these functions. ``file.py::test_a[name]`` is one case,
``file.py::test_a[group: *]`` those whose name begins so.
"""
from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Rule:
    """One rule of the specification, in our own words, and the tests that hold it."""
    id: str
    says: str
    tests: tuple[str, ...]


@dataclass(frozen=True)
class Chapter:
    """Rules that stand together in the specification; ``title`` heads their table."""
    title: str
    rules: tuple[Rule, ...]


def chapter(title: str, *rows: tuple[str, ...]) -> Chapter:
    """A chapter from rows of (id, what the rule says, references …)."""
    return Chapter(title, tuple(Rule(name, says, tuple(t for r in references for t in _nodes(r))) for name, says, *references in rows))


def _nodes(reference: str) -> list[str]:
    file, names = reference.split("::", 1)
    return [f"tests/{file}::{name}" for name in ([names] if "[" in names else names.split(","))]


def holds(reference: str, node: str) -> bool:
    """Does the pytest node id belong to this reference?"""
    if reference.endswith("*]"):
        return node.startswith(reference[:-2])
    return node == reference or node.startswith(reference + "[")


@cache
def functions(file: str) -> frozenset[str]:
    """The test functions of a file, without importing it."""
    path = TESTS.parent / file
    if not path.exists():
        return frozenset()
    return frozenset(n.name for n in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(n, ast.FunctionDef))


def missing(reference: str) -> bool:
    """True when no such test function exists."""
    file, name = reference.split("::", 1)
    return name.split("[")[0] not in functions(file)
