"""Every exception a user of the package can see. Each class shows a failing program and its repair.

A compile error carries ``diagnostics``: one per independent mistake, each with file, line, column, the source line and
a caret. Errors also inherit the builtin exception a Python author would expect, and they pickle.
"""
from __future__ import annotations

import linecache
from dataclasses import dataclass


@dataclass(frozen=True)
class Diagnostic:
    """One mistake. ``loc`` has file, line (from 1), col (from 0, or None), end_line and end_col; ``notes`` are further
    positions with their own text, such as the other line of a conflict or the call that led here."""
    loc: object
    message: str
    hint: str = ""
    notes: tuple = ()
    source: str = ""

    @property
    def line(self):
        return getattr(self.loc, "line", None)

    @property
    def col(self):
        return getattr(self.loc, "col", None)

    def render(self) -> str:
        out = _place(self.loc, self.message, self.source)
        if self.hint:
            out += f"\n  hint: {self.hint}"
        for loc, text in self.notes:
            out += "\n" + _place(loc, f"note: {text}", "")
        return out


def _place(loc, message: str, source: str) -> str:
    """``file:line:col: message`` with the source line and a caret when the text can be found."""
    if loc is None:
        return message
    text = (source or linecache.getline(loc.file, loc.line)).rstrip("\n")
    where = f"{loc.file}:{loc.line}" + ("" if loc.col is None else f":{_char_column(text, loc.col) + 1 if text else loc.col + 1}")
    if not text.strip():
        return f"{where}: {message}"
    strip = len(text) - len(text.lstrip())
    lines = [f"{where}: {message}", "    " + text.lstrip()]
    if loc.col is not None and loc.col >= strip:
        start = _char_column(text, loc.col)
        end = _char_column(text, loc.end_col) if loc.end_col is not None and loc.end_line in (None, loc.line) else len(text)
        lines.append("    " + " " * (start - strip) + "^" * max(1, end - start))
    return "\n".join(lines)


def _char_column(text: str, byte_column: int) -> int:
    """Python counts columns in UTF-8 bytes; carets are placed by characters."""
    return len(text.encode()[:byte_column].decode(errors="ignore"))


def diagnostic(loc, message: str, hint: str = "", notes: tuple = ()) -> Diagnostic:
    """A diagnostic that keeps the source line, so that it renders the same in another process."""
    source = linecache.getline(loc.file, loc.line) if loc is not None else ""
    return Diagnostic(loc, message, hint, notes, source)


class IntentError(Exception):
    """Base class of all errors of this package."""


class CompileError(IntentError):
    """A kernel is not a legal program. ``diagnostics`` holds one entry per independent mistake."""

    def __init__(self, problem, *more):
        if isinstance(problem, str):
            problem = (Diagnostic(None, problem),)
        elif isinstance(problem, Diagnostic):
            problem = (problem, *more)
        self.diagnostics: tuple[Diagnostic, ...] = tuple(problem)
        super().__init__("\n".join(d.render() for d in self.diagnostics))

    def __reduce__(self):
        return type(self), (self.diagnostics,)

    @property
    def line(self):
        """Line of the first diagnostic."""
        return self.diagnostics[0].line

    @property
    def col(self):
        """Column (from 0) of the first diagnostic, or None."""
        return self.diagnostics[0].col


class IntentTypeError(CompileError, TypeError):
    """Dtypes, schemas or arguments do not fit.

    Fails::

        @intent.kernel
        def add(x: I.In[I.f32, ("N",)], n: I.i32, y: I.Out[I.f32, ("N",)]):
            y[:] = x[:] + n                      # f32 + i32: there is no implicit promotion

    Repair: ``y[:] = x[:] + I.cast(n, I.f32)``.
    """


class IntentShapeError(CompileError, ValueError):
    """Ranks, axes or extents do not fit, or are not provably equal.

    Fails::

        @intent.kernel
        def add(x: I.In[I.f32, ("N",)], z: I.In[I.f32, ("M",)], y: I.Out[I.f32, ("N",)]):
            y[:] = x[:] + z[:]                   # nothing says that N equals M

    Repair: give ``z`` the shape ``("N",)``; the equality is then checked when the kernel is called.
    """


class IntentNameError(CompileError, NameError):
    """A name has no value here.

    Fails::

        @intent.kernel
        def rows(x: I.In[I.f32, ("M", "N")], y: I.Out[I.f32, ("M", "N")]):
            for row in I.parallel(I.domain(0, M)):   # M names an extent, it is not a value
                y[row, :] = x[row, :]

    Repair: read it first, ``M, N = x.shape``.
    """


class LanguageError(CompileError, RuntimeError):
    """A construct that the language forbids, or an ``I.`` operation called outside a kernel.

    Fails::

        @intent.kernel
        def total(x: I.In[I.f32, ("N",)], y: I.Out[I.f32, ()]):
            acc = I.cast(0.0, I.f32)
            for i in I.parallel(I.domain(0, x.shape[0])):
                acc = acc + x[i]                 # a carry over an unordered loop
            y[()] = acc

    Repair: ``y[()] = I.reduce.sum(x[:], axis=0)``, or an ordered loop ``for i in I.domain(...)``.
    """


class UnsupportedError(CompileError, NotImplementedError):
    """A legal or foreign construct that this compiler does not handle; never a wrong answer.

    Fails::

        @intent.kernel
        def turn(x: I.In[I.f32, ("N",)], y: I.Out[I.f32, ("N",)]):
            y[:] = x[:] * 1j                     # there are no complex numbers

    Repair: keep real and imaginary parts in two views.
    """


class CallError(IntentError, TypeError):
    """A call breaks the kernel's annotations; nothing was written.

    Fails: ``softmax(x.astype("f8"), y)`` for ``x: I.In[I.f32, ("M", "N")]``. Repair: ``softmax(x.astype("f4"), y)``.
    """


class IntegerOverflow(IntentError, OverflowError):
    """An i32 result of a kernel of policy ``checked`` does not fit. The arrays that it writes hold nothing of use.

    Fails: ``y[:] = x[:] * x[:]`` with an element 100000. Repair: cast first, or use ``policy="strict"``, under which integers wrap.
    """


class InvalidOption(IntentError, ValueError, TypeError):
    """A policy, option, dtype token, target or stage that does not exist.

    Fails: ``@intent.kernel(policy="fast")``. Repair: ``@intent.kernel(policy="strict")``.
    """


class InvalidInput(IntentError, ValueError):
    """A caller's obligation is found broken while the kernel runs: by ``CompileOptions(checks=True)``, or by ``artifact.interpret``.

    With checks, ``loc`` is the source position, ``operation`` what broke it (such as ``"//"``) and ``coordinates`` where: those of
    the loops around it, outer first, then the element's inside of the operation. Otherwise they are None.

    Fails: 8 elements where the kernel has ``I.reshape(x[:], (-1, 3))``. Repair: pass a multiple of 3.
    """

    def __init__(self, message: str, loc=None, operation: str | None = None, coordinates: tuple | None = None):
        super().__init__(message)
        self.loc, self.operation, self.coordinates = loc, operation, coordinates

    @property
    def line(self):
        return getattr(self.loc, "line", None)

    @property
    def col(self):
        """Column (from 0), None where Python keeps none."""
        return getattr(self.loc, "col", None)
