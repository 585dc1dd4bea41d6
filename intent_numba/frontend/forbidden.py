"""Which Python does the language not have? Instructions that no kernel may contain, found before anything is translated."""
from __future__ import annotations

import dis
import inspect

from ..errors import LanguageError, diagnostic
from ..kir import Loc
from ..language.signature import function_loc

_STRING = ("strings do not exist in a kernel", "")
_TRY = ("try does not exist in a kernel", "write a condition around the work")
_WITH = ("with does not exist in a kernel", "keep host work outside the kernel")

INSTRUCTIONS = {
    "IMPORT_NAME": ("a kernel cannot import", "import the module outside; its numbers and I. operations are captured"),
    "STORE_GLOBAL": ("a kernel cannot assign the global name {!r}", "write results to an Out view"),
    "DELETE_GLOBAL": ("a kernel cannot delete the global name {!r}", ""),
    "UNPACK_EX": ("a starred name cannot be unpacked", "name each component, or take a slice of the tuple, t[1:]"),
    "LOAD_BUILD_CLASS": ("classes cannot be defined inside a kernel", ""),
    "DICT_MERGE": ("keyword arguments cannot be unpacked with **", "write each one by its name"),
    "DICT_UPDATE": ("keyword arguments cannot be unpacked with **", "write each one by its name"),
    "FORMAT_VALUE": _STRING, "FORMAT_SIMPLE": _STRING, "FORMAT_WITH_SPEC": _STRING, "BUILD_STRING": _STRING,
    "SETUP_FINALLY": _TRY, "SETUP_WITH": _WITH, "BEFORE_WITH": _WITH, "LOAD_SPECIAL": _WITH,
    "SETUP_ASYNC_WITH": _WITH, "BEFORE_ASYNC_WITH": _WITH,
    "MATCH_SEQUENCE": ("a pattern can only be a value", "compare components"), "MATCH_MAPPING": ("a pattern can only be a value", ""),
    "MATCH_CLASS": ("a pattern can only be a value", ""),
}


def refuse_forbidden(pyfunc) -> None:
    """Raise one LanguageError with a diagnostic for every forbidden statement, in source order."""
    code = pyfunc.__code__
    instructions = list(dis.get_instructions(code))
    lines = _lines(instructions)
    _refuse_generators(pyfunc, instructions, lines)
    found = [(*INSTRUCTIONS[i.opname], i, i.argval) for i in instructions if i.opname in INSTRUCTIONS]
    found += [(*_TRY, i, None) for i in _try_statements(code, instructions)]
    unique: dict = {}
    for message, hint, instruction, name in found:
        loc = _loc(code, instruction, lines)
        unique.setdefault((loc.line, message.format(name)), diagnostic(loc, message.format(name), hint))
    if unique:
        raise LanguageError(sorted(unique.values(), key=lambda d: (d.line, d.col or 0)))


def _refuse_generators(pyfunc, instructions, lines) -> None:
    kind = ("a coroutine" if inspect.iscoroutinefunction(pyfunc) or inspect.isasyncgenfunction(pyfunc)
            else "a generator" if inspect.isgeneratorfunction(pyfunc) else None)
    if kind:
        at = next((i for i in instructions if i.opname in ("YIELD_VALUE", "GET_YIELD_FROM_ITER", "GET_AWAITABLE")), None)
        where = function_loc(pyfunc) if at is None or kind != "a generator" else _loc(pyfunc.__code__, at, lines)
        raise LanguageError(diagnostic(where, f"{pyfunc.__name__}: {kind} cannot be a kernel or helper"))


def _try_statements(code, instructions) -> list:
    """Where the first ``try`` of the function begins, from the exception table that Python 3.11 and later have."""
    if not getattr(code, "co_exceptiontable", b""):
        return []
    position = {i.offset: k for k, i in enumerate(instructions)}
    for entry in sorted(dis._parse_exception_table(code), key=lambda e: e.start):
        handler = position[entry.target]
        if instructions[handler].opname == "PUSH_EXC_INFO" and instructions[handler + 1].opname != "WITH_EXCEPT_START":
            first = position[entry.start]
            marked = first > 0 and instructions[first - 1].opname == "NOP"      # the word itself
            return [instructions[first - 1 if marked else first]]
    return []


def _lines(instructions) -> dict:
    """Offset -> line, for Pythons whose instructions have no positions."""
    line, out = None, {}
    for i in instructions:
        starts = i.starts_line
        if starts is not None and starts is not False:
            line = getattr(i, "line_number", None) if starts is True else starts
        out[i.offset] = line
    return out


def _loc(code, instruction, lines) -> Loc:
    p = getattr(instruction, "positions", None)
    if p is not None and p.lineno is not None:
        return Loc(code.co_filename, p.lineno, p.col_offset, p.end_lineno, p.end_col_offset)
    return Loc(code.co_filename, lines.get(instruction.offset) or code.co_firstlineno)
