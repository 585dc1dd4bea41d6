"""The disk cache: whole files or none, whatever happens to the directory."""
from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys

import pytest

from intent_numba.runtime import cache
from intent_numba.runtime.cache import Entry
from intent_numba.tools import cli

KEY = "ab" * 32
ENTRY = Entry({"kir": "text", "inplace": [["x", "y"]]}, bytes(range(256)) * 10)


def test_what_is_stored_comes_back():
    assert cache.load(KEY) is None
    cache.store(KEY, ENTRY)
    assert cache.load(KEY) == ENTRY


def test_damaged_files_count_as_absent_and_are_written_anew(own_cache):
    cache.store(KEY, ENTRY)
    (path,) = cache.entries()
    whole = path.read_bytes()
    for damaged in (b"", b"foreign", whole[:-1], whole[:40], whole[:100] + b"\0" + whole[101:], whole + b"x", b"\0" * 5000):
        path.write_bytes(damaged)
        assert cache.load(KEY) is None
        cache.store(KEY, ENTRY)
        assert cache.load(KEY) == ENTRY


def test_no_temporary_file_stays(own_cache):
    for i in range(3):
        cache.store(KEY, ENTRY)
    assert [p.name for p in own_cache.iterdir()] == [KEY + ".intent"]


def test_disabled(monkeypatch, own_cache):
    monkeypatch.setenv("INTENT_CACHE", "0")
    cache.store(KEY, ENTRY)
    assert cache.load(KEY) is None and not own_cache.exists()


def test_an_unusable_directory_is_no_error(monkeypatch, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    monkeypatch.setenv("INTENT_CACHE_DIR", str(blocked))
    cache.store(KEY, ENTRY)
    assert cache.load(KEY) is None and cache.entries() == [] and cache.clear() == 0
    cache.discard(KEY)


def test_directory_follows_the_environment(monkeypatch):
    monkeypatch.delenv("INTENT_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert str(cache.directory()) == os.path.join("/somewhere", "intent_numba")


def _write(directory, seed):
    os.environ["INTENT_CACHE_DIR"] = directory
    for i in range(200):
        cache.store(KEY, Entry({"seed": seed}, bytes([seed]) * (1000 + i)))
        found = cache.load(KEY)
        assert found is not None and set(found.code) == {found.header["seed"]}


def test_processes_that_write_at_once(own_cache):
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_write, args=(str(own_cache), seed)) for seed in (1, 2, 3)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert [w.exitcode for w in workers] == [0, 0, 0]
    assert cache.load(KEY) is not None


def test_command(capsys):
    cache.store(KEY, ENTRY)
    assert cli.main(["cache", "info"]) == 0
    assert "entries: 1" in capsys.readouterr().out
    assert cli.main(["cache", "clear"]) == 0
    assert cache.entries() == []
    assert cli.main(["version"]) == 0
    assert "intent_numba" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        cli.main(["cache", "burn"])


SHIFT = """
import sys, numpy as np, intent_numba as intent, intent_numba.language as I
C = float(sys.argv[1])
@intent.kernel
def k(x: I.In[I.f32, ("N",)], y: I.Out[I.f32, ("N",)]):
    for i in I.domain(0, x.shape[0]):
        y[i] = x[i] * C
k.run(np.ones(2, np.float32))
C = float(sys.argv[2])
memory = np.ones(3, np.float32)
k(memory[:2], memory[1:])
print(memory.tolist())
"""


def test_a_variant_is_kept_under_the_values_it_was_compiled_with(own_cache, tmp_path):
    """Captured values are those of the first compilation, also for the code that overlapping views need later."""
    script = tmp_path / "k.py"
    script.write_text(SHIFT)
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

    def run(*values):
        done = subprocess.run([sys.executable, str(script), *values], capture_output=True, text=True, timeout=300,
                              env={**os.environ, "PYTHONPATH": root})
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout.strip()
    assert run("2", "3") == "[1.0, 2.0, 4.0]"
    assert run("3", "3") == "[1.0, 3.0, 9.0]"
