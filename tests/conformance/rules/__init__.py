"""The rules, one file for each part of the specification."""
from .cases import CASES
from .decisions import DECISIONS

CHAPTERS = (DECISIONS, CASES)
