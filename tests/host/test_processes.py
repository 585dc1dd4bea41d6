"""Threads, forks and processes, under every threading layer; and places without a source file."""
from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

ROOT = __file__.rsplit("/tests/", 1)[0]

HEAD = """
import os, sys, threading, multiprocessing
import numpy as np
import intent_numba as intent
import intent_numba.language as I
from tests.host.kernels import row_sums, scale
x = np.ones((3000, 1000), "f4")
def work(n=1):
    for _ in range(n):
        assert (row_sums.run(x) == 1000).all()
"""


def python(body: str, own_cache, *flags, stdin=None, **env) -> str:
    source = HEAD + textwrap.dedent(body)
    command = [sys.executable, *flags, *(["-c", source] if stdin is None else [])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, input=stdin, cwd=ROOT,
                          env={"PYTHONPATH": ROOT, "PATH": "/usr/bin", "INTENT_CACHE_DIR": str(own_cache), **env})
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("layer", ["omp", "workqueue"])
def test_concurrent_threads(layer, own_cache):
    out = python("""
        work()
        threads = [threading.Thread(target=work, args=(20,)) for _ in range(4)]
        for t in threads: t.start()
        for t in threads: t.join()
        import numba
        print(numba.threading_layer())
    """, own_cache, NUMBA_THREADING_LAYER=layer, NUMBA_NUM_THREADS="4")
    assert out.strip() == layer


@pytest.mark.parametrize("layer", ["omp", "workqueue"])
def test_fork_after_a_launch(layer, own_cache):
    out = python("""
        work(20)
        y = np.zeros(3000, "f4")
        for _ in range(20): row_sums(x, y)
        pid = os.fork()
        if pid == 0:
            work(3)
            row_sums(x, y)
            pid2 = os.fork()
            if pid2 == 0:
                work(); os._exit(0)
            os._exit(os.waitpid(pid2, 0)[1])
        status = os.waitpid(pid, 0)[1]
        work(3)
        print(status)
    """, own_cache, NUMBA_THREADING_LAYER=layer, NUMBA_NUM_THREADS="4")
    assert out.strip() == "0"


@pytest.mark.parametrize("layer", ["omp", "workqueue"])
def test_fork_before_a_launch(layer, own_cache):
    out = python("""
        pid = os.fork()
        if pid == 0:
            work(3); os._exit(0)
        work(3)
        print(os.waitpid(pid, 0)[1])
    """, own_cache, NUMBA_THREADING_LAYER=layer)
    assert out.strip() == "0"


@pytest.mark.parametrize("layer", ["omp", "workqueue"])
def test_njit_callers(layer, own_cache):
    python("""
        import numba
        @numba.njit(nogil=True)
        def sums(x, y):
            row_sums(x, y)
        def loop():
            y = np.zeros(3000, "f4")
            for _ in range(10):
                sums(x, y)
                assert (y == 1000).all()
        loop()
        threads = [threading.Thread(target=loop) for _ in range(4)]
        for t in threads: t.start()
        for t in threads: t.join()
        pid = os.fork()
        if pid == 0:
            loop(); os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
    """, own_cache, NUMBA_THREADING_LAYER=layer, NUMBA_NUM_THREADS="4")


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_process_pools(method, own_cache, tmp_path):
    script = tmp_path / "pool.py"
    script.write_text(HEAD + textwrap.dedent(f"""
        def job(args):
            kernel, n = args
            return float(kernel.run(np.full((4, n), 2, "f4"))[0])
        if __name__ == "__main__":
            work()
            with multiprocessing.get_context("{method}").Pool(2) as pool:
                assert pool.map(job, [(row_sums, n) for n in (10, 20, 30)]) == [20, 40, 60]
    """))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=300,
                          env={"PYTHONPATH": ROOT, "PATH": "/usr/bin", "INTENT_CACHE_DIR": str(own_cache)})
    assert done.returncode == 0, done.stderr[-3000:]


def test_the_number_of_threads_is_numba_s(own_cache):
    python("""
        import numba
        want = row_sums.run(np.random.default_rng(0).standard_normal((3000, 1000)).astype("f4"))
        for n in (1, 2, 4):
            numba.set_num_threads(n)
            got = row_sums.run(np.random.default_rng(0).standard_normal((3000, 1000)).astype("f4"))
            assert np.array_equal(got.view("u4"), want.view("u4"))
    """, own_cache, NUMBA_NUM_THREADS="4")


def test_the_second_process_reads_the_cache(own_cache):
    body = """
        art = intent.compile(row_sums)
        work()
        y = np.zeros(3000, "f4")
        art.interpret(x, y)
        assert (y == 1000).all() and art.inspect("kir").startswith("kernel row_sums(")
        print(art._build.compiled().origin, "intent_numba.frontend.kernel" in sys.modules)
        assert "define" in art.inspect("llvm") and "row_sums" in art.inspect("task") and len(art.inspect("asm")) > 100
    """
    assert python(body, own_cache).split() == ["compiled", "True"]
    assert python(body, own_cache).split() == ["cache", "False"]
    for path in own_cache.iterdir():
        path.write_bytes(path.read_bytes()[:-1])
    assert python(body, own_cache).split() == ["compiled", "True"]
    assert python(body, own_cache).split() == ["cache", "False"]
    assert python(body, own_cache, INTENT_CACHE="0").split() == ["compiled", "True"]


def test_processes_that_compile_at_once(own_cache):
    source = HEAD + "work(3)\n"
    env = {"PYTHONPATH": ROOT, "PATH": "/usr/bin", "INTENT_CACHE_DIR": str(own_cache)}
    runs = [subprocess.Popen([sys.executable, "-c", source], env=env, cwd=ROOT) for _ in range(3)]
    assert [r.wait(timeout=300) for r in runs] == [0, 0, 0]


SQUARE = '''
@intent.kernel
def square(x: I.In[I.f32, ("N",)], y: I.Out[I.f32, ("N",)]):
    y[:] = x[:] * x[:]
'''


def test_python_c_and_exec(own_cache):
    python(SQUARE + textwrap.dedent("""
        v = np.arange(5, dtype="f4")
        assert (square.run(v) == v * v).all()
        lines = ["from __future__ import annotations", "@intent.kernel",
                 "def doubled(x: I.In[I.f32, ('N',)], y: I.Out[I.f32, ('N',)]):", "    y[:] = x[:] + x[:]"]
        space = {"intent": intent, "I": I}
        exec(chr(10).join(lines), space)
        assert (space["doubled"].run(v) == v + v).all()
    """), own_cache)


def test_the_plain_prompt_and_redefinition(own_cache):
    session = HEAD.replace("\ndef work", "\n\ndef work") + textwrap.dedent("""
    v = np.arange(5, dtype="f4")
    @intent.kernel
    def k(x: I.In[I.f32, ("N",)], y: I.Out[I.f32, ("N",)]):
        y[:] = x[:] + C

    C = 1
    print(k.run(v).tolist())
    C = 2
    print(k.run(v).tolist())
    @intent.kernel
    def k(x: I.In[I.f32, ("N",)], y: I.Out[I.f32, ("N",)]):
        y[:] = x[:] + C

    print(k.run(v).tolist())
    @intent.kernel
    def k(x: I.In[I.f32, ("N",)], y: I.Out[I.f32, ("N",)]):
        y[:] = x[:] * C

    print(k.run(v).tolist())
    """)
    blocks = session.replace("        assert (row_sums.run(x) == 1000).all()\n", "        assert (row_sums.run(x) == 1000).all()\n\n")
    out = python("", own_cache, "-i", stdin=blocks)
    lists = [line.removeprefix(">>> ").strip() for line in out.splitlines() if "[" in line]
    assert lists == ["[1.0, 2.0, 3.0, 4.0, 5.0]", "[1.0, 2.0, 3.0, 4.0, 5.0]", "[2.0, 3.0, 4.0, 5.0, 6.0]", "[0.0, 2.0, 4.0, 6.0, 8.0]"]


def test_import_is_light(own_cache):
    body = """
        import sys, numpy, time
        start = time.perf_counter()
        import intent_numba as intent
        import intent_numba.language
        heavy = [m for m in ("numba", "llvmlite", "ml_dtypes", "intent_numba.kir") if m in sys.modules]
        print(time.perf_counter() - start, heavy)
    """
    best = min(float(run.split()[0]) for run in (subprocess.run(
        [sys.executable, "-c", textwrap.dedent(body)], capture_output=True, text=True, check=True,
        env={"PYTHONPATH": ROOT, "PATH": ""}).stdout.replace(" []", "") for _ in range(4)))
    assert best < 0.08
