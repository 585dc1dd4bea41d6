"""The table of rules is whole: every rule has tests, every test exists, and the page shows exactly these rules."""
import pytest

from .page import PAGE, listed
from .rules import CHAPTERS
from .table import missing

RULES = [r for c in CHAPTERS for r in c.rules]


@pytest.mark.parametrize("c", CHAPTERS, ids=lambda c: c.title)
def test_every_rule_names_tests_that_exist(c):
    assert not [r.id for r in c.rules if not r.tests]
    assert not [(r.id, t) for r in c.rules for t in r.tests if missing(t)]


def test_rules_are_named_once():
    names = [r.id for r in RULES]
    assert not {n for n in names if names.count(n) > 1}


def test_every_decision_and_case_is_there():
    names = {r.id.split(".")[0] for r in RULES}
    assert {f"D{n}" for n in range(1, 49)} | {f"case {n}" for n in range(1, 23)} <= names


def test_the_page_lists_exactly_the_rules():
    assert listed(PAGE.read_text(encoding="utf-8")) == [(r.id, r.says) for r in RULES], "run python -m tests.conformance"
