"""Host tests compile into a cache of their own."""
from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("INTENT_CACHE_DIR", str(tmp_path / "intent-cache"))
    monkeypatch.delenv("INTENT_CACHE", raising=False)
    return tmp_path / "intent-cache"
