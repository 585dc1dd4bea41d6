"""When are two compilations the same? Everything that can change code changes the key; nothing else does."""
from __future__ import annotations

import enum
import subprocess
import sys
import textwrap
import types

import numba
import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from intent_numba.runtime import fingerprint
from intent_numba.runtime.interface import Interface
from intent_numba.runtime.options import CompileOptions

EMPTY = Interface("k", ())
DEFAULTS = CompileOptions()


def key(f, constexprs=(), policy="strict", options=DEFAULTS, alias=frozenset(), target=("cpu", "x")):
    return fingerprint.variant_key(fingerprint.kernel_key(f, EMPTY, constexprs, policy, options, target), alias)


def define(source: str, **names):
    """A function from text, as in exec or a notebook cell."""
    scope = {"intent": intent, "I": I, "np": np, **names}
    exec(compile(textwrap.dedent(source), "<cell>", "exec"), scope)
    return scope["f"]


BODY = "def f(x):\n    return x + {}\n"


def test_the_same_text_has_the_same_key():
    assert key(define(BODY.format(1))) == key(define("\n\n\n" + BODY.format(1))) is not None


@pytest.mark.parametrize("other", ["2", "1.0", "True", "-1", "(1, 2)", "'1'"])
def test_constants_count(other):
    assert key(define(BODY.format(1))) != key(define(BODY.format(other)))


def test_zero_signs_and_nested_constants_count():
    assert key(define(BODY.format("0.0"))) != key(define(BODY.format("-0.0")))
    assert key(define(BODY.format("(1, (2, 0.0))"))) != key(define(BODY.format("(1, (2, -0.0))")))


def test_names_and_operators_count():
    assert key(define("def f(x):\n    return x.a")) != key(define("def f(x):\n    return x.b"))
    assert key(define("def f(x):\n    return x + 1")) != key(define("def f(x):\n    return x * 1"))
    assert key(define("def f(x):\n    return [x for y in x]")) != key(define("def f(x):\n    return [y for y in x]"))


@pytest.mark.parametrize("first, second", [(1, 2), (1, True), (0.0, -0.0), (1, 1.0), (float("inf"), float("nan"))])
def test_captured_globals_count(first, second):
    assert key(define(BODY.format("C"), C=first)) != key(define(BODY.format("C"), C=second))


def test_captured_closures_count():
    def outer(c):
        def f(x):
            return x + c
        return f
    assert key(outer(1)) == key(outer(1)) != key(outer(2))


def test_names_that_do_not_reach_the_code_do_not_count():
    assert key(define(BODY.format(1), C=1)) == key(define(BODY.format(1), C=2))


def test_every_attribute_of_a_module_counts_whoever_reads_it():
    source = """
        @intent.fn
        def helper(x):
            return x * cfg.B
        def f(x):
            return helper(x) * cfg.A
        """

    def of(holder, **values):
        cfg = types.ModuleType("cfg") if holder == "module" else type("cfg", (type("Base", (), values),), {})
        if holder == "module":
            vars(cfg).update(values)
        return key(define(source, cfg=cfg))
    for holder in ("module", "class"):
        first = of(holder, A=1.0, B=3.0, C=0)
        assert first == of(holder, A=1.0, B=3.0, C=1) is not None
        assert len({first, of(holder, A=1.0, B=7.0, C=0), of(holder, A=7.0, B=3.0, C=0), of(holder, A=1.0, B=I.f32, C=0)}) == 4


def test_attributes_that_a_module_computes_are_not_cached():
    cfg = types.ModuleType("cfg")
    cfg.__getattr__ = {"A": 1.0}.__getitem__
    assert key(define("def f(x):\n    return x + cfg.A", cfg=cfg)) is None


def test_helpers_count_to_any_depth():
    source = """
        @intent.fn
        def deep(x):
            return x + {}
        @intent.fn
        def helper(x):
            return deep(x)
        def f(x):
            return helper(x)
    """
    assert key(define(source.format(1))) == key(define(source.format(1))) != key(define(source.format(2)))


def test_defaults_of_helpers_count():
    source = "@intent.fn\ndef helper(x, y={}):\n    return x\ndef f(x):\n    return helper(x)"
    assert key(define(source.format(1))) != key(define(source.format(2)))


def test_constants_of_captured_modules_and_classes_count():
    def with_module(value):
        module = types.ModuleType("settings")
        module.SIZE = value
        return define("def f(x):\n    return x + settings.SIZE", settings=module)
    assert key(with_module(1)) == key(with_module(1)) != key(with_module(2))
    with_class = lambda value: define("def f(x):\n    return x + C.SIZE", C=type("C", (), {"SIZE": value}))
    assert key(with_class(1)) != key(with_class(2))


def test_enums_count_by_type_member_and_values():
    make = lambda name, **members: I.Enum(name, members)
    f = define(BODY.format(1))
    A, B, C = make("A", X=0, Y=1), make("B", X=0, Y=1), make("A", X=0, Y=2)
    keys = {key(f, (v,)) for v in (A.X, A.Y, B.X, C.X)}
    assert len(keys) == 4


def test_policy_options_variant_and_target_count():
    f = define(BODY.format(1))
    keys = [key(f), key(f, policy="checked"), key(f, options=CompileOptions(numerics="bitwise")),
            key(f, options=CompileOptions(checks=True)), key(f, alias=frozenset({frozenset("xy")})), key(f, target=("cpu", "y")),
            key(f, (1,)), key(f, (True,)), key(f, (1.0,))]
    assert len(set(keys)) == len(keys)


def test_annotations_count():
    kernels = []
    for shape in ('("N",)', '("M",)', "(3,)"):
        kernels.append(define(f"@intent.kernel\ndef f(x: I.In[I.f32, {shape}]):\n    pass"))
    keys = {fingerprint.kernel_key(k.pyfunc, k.interface, (), "strict", CompileOptions(), ("cpu",)) for k in kernels}
    assert len(keys) == 3


@pytest.mark.parametrize("value", [np.zeros(3), [1, 2], {"a": 1}, object(), numba.njit(lambda x: x)])
def test_what_has_no_fixed_content_makes_a_kernel_uncacheable(value):
    assert key(define(BODY.format("C"), C=value)) is None


def test_language_objects_are_content():
    f = define("def f(x):\n    return I.cast(x, D) + I.LOG2E", D=I.f32)
    g = define("def f(x):\n    return I.cast(x, D) + I.LOG2E", D=I.f64)
    assert key(f) is not None and key(f) != key(g)


def test_recursion_ends():
    assert key(define("@intent.fn\ndef h(x):\n    return h(x)\ndef f(x):\n    return h(x)")) is not None


def test_keys_do_not_depend_on_the_process():
    source = textwrap.dedent("""
        import sys; sys.path.insert(0, {root!r})
        import intent_numba.language as I
        from intent_numba.runtime import fingerprint
        from intent_numba.runtime.interface import Interface
        from intent_numba.runtime.options import CompileOptions
        C = 3
        def f(x, s):
            for name in {{"a", "b", "c"}}:
                x = x + C
            return I.exp(x) if s in frozenset(("u", "v")) else x
        print(fingerprint.kernel_key(f, Interface("k", ()), (1, 2.5), "strict", CompileOptions(), ("cpu",)))
    """).format(root=__file__.rsplit("/tests/", 1)[0])
    runs = {subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True,
                           env={"PYTHONHASHSEED": seed, "PATH": ""}).stdout for seed in ("1", "2")}
    assert len(runs) == 1 and len(runs.pop().strip()) == 64


def test_plain_enums_are_not_language_enums():
    class Colour(enum.Enum):
        RED = 1
    assert key(define(BODY.format("C"), C=Colour.RED)) is None
