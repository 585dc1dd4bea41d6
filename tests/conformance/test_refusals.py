"""What the text forbids is refused: class, message, line, column and length of each refusal of ``refusals.txt``."""
from pathlib import Path

import pytest

from tests.support.refusals import assert_refused, read_refusals

from .world import SIGNATURE, WORLD

CASES = read_refusals(Path(__file__).with_name("refusals.txt"))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_refused(case):
    assert_refused(case, SIGNATURE, WORLD)
