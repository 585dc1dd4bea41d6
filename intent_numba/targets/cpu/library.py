"""How LLVM text becomes running code: Numba's code library and JIT engine, with our own short list of passes.

The text is already vector code in SSA form, so the mid-end has little to do and most of it is skipped: it costs
more than it gains (O1 added 60 ms for nothing on softmax).
"""
from __future__ import annotations

import os
import re
import threading
from dataclasses import dataclass, field
from functools import cache

import llvmlite.binding as llvm
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
from numba.core.compiler_lock import global_compiler_lock

EMITTER_VERSION = "1"
"""Part of every cache key; raise it when the same program is emitted as other text."""


class Library(JITCodeLibrary):
    """One compiled text."""

    opt = "clean"

    def _optimize_functions(self, ll_module):
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self):
        if self.opt == "none":
            return
        tuning = llvm.create_pipeline_tuning_options(speed_level=2)
        builder = llvm.create_pass_builder(self._codegen._tm, tuning)
        if self.opt == "full":
            return builder.getModulePassManager().run(self._final_module, builder)
        passes = llvm.create_new_module_pass_manager()
        passes.add_sroa_pass()
        passes.add_simplify_cfg_pass()
        passes.run(self._final_module, builder)
        thorough = builder.getFunctionPassManager()
        for function in self._final_module.functions:
            if any(b'"intent-opt"="full"' in attribute for attribute in function.attributes):
                thorough.run(function, builder)


class Codegen(JITCPUCodegen):
    """Numba's engine for the host, holding our libraries."""

    _library_class = Library


@dataclass(frozen=True, eq=False)
class Code:
    """Machine code in this process. ``address`` is the entry of ``symbol``: ``int32_t f(int64_t *frame)``."""
    symbol: str
    address: int
    library: Library | None = None
    text: str = ""
    _object: list = field(default_factory=list, repr=False)

    def object_code(self) -> bytes:
        """The object file, for ``load_object`` in another process."""
        return self._object[0]

    def asm(self) -> str:
        """Assembly text; empty for code that was loaded from an object."""
        if self.library is None:
            return ""
        with global_compiler_lock:                              # emission changes the module: work on a copy
            return str(self.library.codegen._tm.emit_assembly(self.library._final_module.clone()))

    def llvm(self) -> str:
        """LLVM text after our passes."""
        return str(self.library._final_module) if self.library is not None else self.text


@cache
def codegen() -> Codegen:
    """The one engine of this process."""
    return Codegen("intent.exec")


_codes: dict[str, Code] = {}
_lock = threading.Lock()


def compile_text(text: str, symbol: str, opt: str = "clean", parts=(), linked=()) -> Code:
    """See the package. ``parts`` are (symbol, text) of functions that the text declares and calls; ``linked`` are Numba libraries
    that these call."""
    with global_compiler_lock, _lock:
        known = _codes.get(symbol)
        if known is not None:
            if known.text != text:
                raise RuntimeError(f"internal error: two programs have the symbol {symbol!r}")
            return known
        _prepare(text.encode() if "numba_parallel_for" in text else b"")
        library = codegen().create_library(symbol)
        library.opt = opt
        library.enable_object_caching()
        for other in linked:
            library.add_linking_library(other)
        library.add_llvm_module(_parse(text))
        for name, part in parts:
            library.add_llvm_module(_parse(part))
            library._final_module.get_function(name).linkage = "internal"      # other kernels may bring the same
        library.finalize()
        code = Code(symbol, library.get_pointer_to_function(symbol), library, text, [library._get_compiled_object()])
        if not code.address:
            raise RuntimeError(f"internal error: the text does not define {symbol!r}")
        _codes[symbol] = code
        return code


def load_object(data: bytes, symbol: str) -> Code:
    """See the package."""
    with global_compiler_lock, _lock:
        known = _codes.get(symbol)
        if known is not None:
            return known
        _prepare(data)
        engine = codegen()._engine._ee
        engine.add_object_file(llvm.ObjectFileRef.from_data(data))
        engine.finalize_object()
        address = engine.get_function_address(symbol)
        if not address:
            raise RuntimeError(f"internal error: the object does not define {symbol!r}")
        code = _codes[symbol] = Code(symbol, address, None, "", [data])
        return code


def fingerprint() -> tuple[str, ...]:
    """See the package."""
    return (*map(str, codegen().magic_tuple()), ".".join(map(str, llvm.llvm_version_info)), EMITTER_VERSION)


def _prepare(code: bytes) -> None:
    """Make external symbols resolvable. Starting the threads takes a while, so only code that uses them does it."""
    if b"numba_parallel_for" in code:
        from numba.np.ufunc import parallel

        parallel._launch_threads()


def _parse(text: str):
    try:
        module = llvm.parse_assembly(text)
        module.triple = codegen()._tm.triple
        module.verify()
        return module
    except RuntimeError as error:
        raise RuntimeError(f"internal error: LLVM refused the generated code: {_excerpt(text, str(error))}") from None


def _excerpt(text: str, message: str) -> str:
    """LLVM's message, with the lines around it when INTENT_DEBUG is set."""
    place = re.search(r":(\d+):\d+: error", message)
    if not os.environ.get("INTENT_DEBUG"):
        return message
    if not place:
        return f"{message}\n{text}"
    at = int(place.group(1))
    lines = text.splitlines()[max(at - 4, 0):at + 3]
    return message + "\n" + "\n".join(f"{max(at - 4, 0) + k + 1:5} {line}" for k, line in enumerate(lines))
