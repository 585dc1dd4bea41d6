"""Prints the seed of the random tests, so that any run can be repeated."""
from .settings import SEED


def pytest_report_header(config):
    return f"fuzz seed: {SEED} (INTENT_FUZZ_SEED={SEED} repeats it)"


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"fuzz seed: {SEED}")
