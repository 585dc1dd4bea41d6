"""What a user sees when a call, an annotation or an option is wrong: Intent's own class, the repair, and no internal frames."""
import traceback

import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I

X = np.ones(3, np.float32)


@intent.kernel
def shifted(x: I.In[I.f32, ("N",)], s: I.f32, y: I.Out[I.f32, ("N",)], C: I.Constexpr[int]):
    """Adds s."""
    y[:] = x[:] + s


@intent.kernel
def wrong(x: I.In[I.f32, ("N",)], y: I.Out[I.f32, ("N",)]):
    y[:] = x[:] + I.cast(1, I.i8)


@pytest.mark.parametrize("call, words", [
    (lambda: shifted.run(X, 1.0, extents=5, C=1), "extents: expected a dict"),
    (lambda: shifted.run(X, 1.0, X, C=1), "run makes 'y' itself and takes x, s, C"),
    (lambda: shifted.run(X, 1.0, X, 1), "run makes 'y' itself and takes x, s, C"),
    (lambda: intent.compile(lambda x: x), "intent.compile takes a kernel"),
    (lambda: intent.compile(shifted, constexprs=[1]), "constexprs is a dict"),
    (lambda: intent.kernel(3), "decorates a function")])
def test_calls(call, words):
    with pytest.raises(intent.CallError) as caught:
        call()
    assert words in str(caught.value)


@pytest.mark.parametrize("text, builtin, words", [
    ("I.In[np.float32, ('N',)]", TypeError, "write I.f32"),
    ("I.In['f32', ('N',)]", TypeError, "write I.f32"),
    ("I.In[I.f32, 'N']", TypeError, "the shape is a tuple"),
    ("I.In[I.f32, ('N+1',)]", TypeError, "names and non-negative integers"),
    ("I.In[I.f32, (-1,)]", ValueError, "cannot be negative"),
    ("I.In[I.f32, ('N',), I.constraints(alias='g', noalias=True)]", ValueError, "at once"),
    ("I.Constexpr[str]", TypeError, "I.Constexpr[int"),
    ("I.Enum('Twins', {'A': 1, 'B': 1})", TypeError, "unique"),
    ("I.dtype('float32')", ValueError, "write I.f32"),
    ("intent.kernel(policy='fast')", ValueError, "strict"),
    ("intent.CompileOptions(numerics='fast')", ValueError, "source"),
    ("intent.CompileOptions(checks='yes')", TypeError, "checks is a bool"),
    ("intent.compile(shifted, constexprs={'C': 1}).inspect('foo')", ValueError, "stage is one of")])
def test_annotations_and_options(text, builtin, words):
    with pytest.raises(intent.IntentError) as caught:
        eval(text)
    assert isinstance(caught.value, builtin) and words in str(caught.value)


@pytest.mark.parametrize("call", [lambda: wrong(X, X.copy()), lambda: wrong.run(X), lambda: intent.compile(wrong),
                                  lambda: shifted.run(X.astype("f8"), 1.0, C=1)])
def test_internal_frames_are_dropped(call, monkeypatch):
    monkeypatch.delenv("INTENT_DEBUG", raising=False)
    with pytest.raises(intent.IntentError) as caught:
        call()
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert [f.filename for f in frames[:2]] == [__file__, __file__] and len(frames) == 3
    assert caught.value.__cause__ is None and caught.value.__suppress_context__
    monkeypatch.setenv("INTENT_DEBUG", "1")
    with pytest.raises(intent.IntentError) as caught:
        call()
    assert len(traceback.extract_tb(caught.value.__traceback__)) > 4


def test_a_defect_of_the_compiler_shows_nothing_of_its_inside(monkeypatch):
    from intent_numba import lowering

    def fails(*args):
        raise KeyError("%internal")
    monkeypatch.delenv("INTENT_DEBUG", raising=False)
    monkeypatch.setattr(lowering, "lower", fails)

    @intent.kernel
    def unlucky(x: I.In[I.f32, ("N",)], y: I.Out[I.f32, ("N",)]):
        y[:] = x[:] * 17.25
    with pytest.raises(intent.UnsupportedError, match="unlucky is beyond this compiler") as caught:
        unlucky.run(X)
    assert "KeyError" not in str(caught.value) and "%internal" not in str(caught.value)


def test_help_shows_the_kernel():
    assert shifted.__doc__ == "Adds s." and shifted.__wrapped__ is shifted.pyfunc and shifted.__module__ == __name__


@intent.kernel(policy="checked")
def squares(x: I.In[I.i32, ("N",)], y: I.Out[I.i32, ("N",)]):
    y[:] = x[:] * x[:]


@intent.kernel(policy="checked")
def cubes(x: I.In[I.i32, ("N",)], y: I.Out[I.i32, ("N",)]):
    v = x[:] * x[:]
    y[:] = v * x[:]


def test_an_overflow_shows_the_operation():
    big = np.array([1, 100000], np.int32)
    for call in (lambda: squares.run(big), lambda: squares(big, big.copy()), lambda: intent.compile(squares).prepare(big).launch(),
                 lambda: intent.compile(squares).interpret(big, big.copy())):
        with pytest.raises(intent.IntegerOverflow, match="squares: an integer result does not fit") as caught:
            call()
        assert isinstance(caught.value, OverflowError) and isinstance(caught.value, intent.IntentError)
    line = squares.pyfunc.__code__.co_firstlineno + 2
    with pytest.raises(intent.IntegerOverflow) as caught:
        squares.run(big)
    assert f"{__file__}:{line}" in str(caught.value) and "y[:] = x[:] * x[:]" in str(caught.value)
    with pytest.raises(intent.IntegerOverflow) as caught:
        cubes.run(big)
    assert str(caught.value).count("it may be this one") == 2
