"""The rules, one file for each part of the specification."""
from . import constructs, numbers, supplement
from .cases import CASES
from .decisions import DECISIONS

CHAPTERS = (DECISIONS, CASES, *numbers.CHAPTERS, *constructs.CHAPTERS, *supplement.CHAPTERS)
