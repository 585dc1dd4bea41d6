"""Runs every Python block of the documentation, page by page, in order."""
import re
from pathlib import Path

import intent_numba.language as I
import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = ["README.md", "docs/index.md", "docs/writing-kernels.md", "docs/language.md", "docs/numerics.md",
         "docs/policies.md", "docs/differences.md"]


def blocks(page):
    """(line of the block in the page, its text) of each ```python block."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for match in re.finditer(r"^```python\n(.*?)^```$", text, re.M | re.S):
        yield text.count("\n", 0, match.start()) + 1, match.group(1)


@pytest.mark.parametrize("page", PAGES)
def test_page_runs(page):
    session = {"__name__": "__main__"}
    count = 0
    for line, text in blocks(page):
        exec(compile("\n" * line + text, str(ROOT / page), "exec"), session)
        count += 1
    assert count


def test_readme_starts_with_the_two_commands():
    fences = re.findall(r"^```(\w*)\n(.*?)^```$", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S)
    (first, demo), (second, tests) = fences[:2]
    assert (first, second) == ("sh", "sh")
    for command in (demo, tests):
        assert len(command.strip().splitlines()) == 1 and command.startswith("python3 -m venv ")
    assert "examples/sentence_search.py" in demo and "pytest" in tests


def test_every_name_of_the_language_is_described():
    text = (ROOT / "docs/language.md").read_text(encoding="utf-8")
    assert not [name for name in I.__all__ if name != "DType" and not re.search(rf"\bI\.{name}\b", text)]
