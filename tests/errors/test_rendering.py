"""How an error reads: place, source line, caret, hint, notes; several at once; across processes; without a source file."""
import linecache
import pickle

import pytest

import intent_numba.language as I
from intent_numba import errors
from intent_numba.errors import CompileError, IntentTypeError, LanguageError
from intent_numba.frontend import build_kernel
from intent_numba.language.functions import Helper

TEXT = '''def kernel(x: I.In[I.f32, ("N",)], k: I.In[I.i32, ("N",)], y: I.Out[I.f32, ("N",)]):
    é = 1; y[:] = (x[:] * 2) + (x[:] + k[:])
    y[0] = k[0]
    for i in I.domain(0, 3):
        y[i] = I.exp(k[i])
'''


def failing(text=TEXT, file="<rendering>", cached=True, **scope):
    if cached:
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    else:
        linecache.cache.pop(file, None)
    scope = {"I": I, **scope}
    exec(compile(text, file, "exec"), scope)
    with pytest.raises(CompileError) as caught:
        build_kernel(scope["kernel"])
    return caught.value


def test_all_independent_mistakes_are_reported_in_order():
    e = failing()
    assert [d.line for d in e.diagnostics] == [2, 3, 5]
    assert isinstance(e, IntentTypeError) and isinstance(e, TypeError)


def test_place_source_caret_and_hint():
    text = str(failing().diagnostics[0].render())
    if failing().col is None:
        pytest.skip("this Python keeps no columns")
    assert text.splitlines() == [
        "<rendering>:2:33: +: f32 and i32 do not mix; there is no implicit promotion",
        "    é = 1; y[:] = (x[:] * 2) + (x[:] + k[:])",
        "                                ^^^^^^^^^^^",
        "  hint: write I.cast(k[:], I.f32)"]


def test_without_a_source_only_the_snippet_is_missing():
    e = failing(cached=False, file="<gone>")
    assert str(e).startswith("<gone>:2") and "do not mix" in str(e) and "^" not in str(e)


def test_errors_pickle_with_their_source():
    e = failing()
    linecache.cache.pop("<rendering>")
    again = pickle.loads(pickle.dumps(e))
    assert type(again) is type(e) and str(again) == str(e) and again.diagnostics == e.diagnostics


@Helper
def inner(v):
    return v + I.cast(1, I.i8)


@Helper
def outer(v):
    return inner(v)


def test_a_mistake_in_a_helper_shows_the_calls():
    e = failing("def kernel(x: I.In[I.f32, (1,)], y: I.Out[I.f32, (1,)]):\n    y[0] = outer(x[0])\n", "<calls>", outer=outer)
    (d,) = e.diagnostics
    assert d.loc.file == __file__ and [n[1] for n in d.notes] == ["called here", "called here"]
    assert "<calls>:2" in str(e)


def test_a_race_shows_both_lines():
    e = failing("def kernel(y: I.InOut[I.f32, ('N',)]):\n    for i in I.parallel(I.domain(0, 9)):\n        t = y[i+1]\n        y[i] = t\n",
                "<race>")
    assert isinstance(e, LanguageError)
    assert e.line == 4 and [loc.line for loc, _ in e.diagnostics[0].notes] == [3, 2]


def test_what_follows_from_one_mistake_is_not_reported():
    e = failing("def kernel(x: I.In[I.f32, ('N',)], y: I.Out[I.f32, (1,)]):\n    acc = 0.0\n    for i in I.domain(0, 3):\n"
                "        acc = x[i]\n    y[0] = acc\n", "<cascade>")
    assert len(e.diagnostics) == 1 and "I.cast(0.0, I.f32)" in str(e)


@pytest.mark.parametrize("cls", [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, errors.IntentError)
                                 and c not in (errors.IntentError, errors.CompileError)])
def test_each_class_documents_a_failing_program_and_its_repair(cls):
    assert "Fails" in cls.__doc__ and "Repair" in cls.__doc__


def test_operations_outside_a_kernel_name_themselves():
    for call, name in ((lambda: I.exp(1.0), "I.exp"), (lambda: I.reduce.sum([1], axis=0), "I.reduce.sum"),
                       (lambda: I.atomic.add(1, 2, order="relaxed"), "I.atomic.add"), (lambda: I.random.bits(1, 2), "I.random.bits")):
        with pytest.raises(LanguageError, match=name.replace(".", r"\.")):
            call()
    with pytest.raises(LanguageError, match="inner is an @intent.fn helper"):
        inner(1)
