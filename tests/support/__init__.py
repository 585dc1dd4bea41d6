"""Helpers of the tests: ``check`` runs one kernel by every road and compares."""
from .arrays import LAYOUTS, NUMPY, integers, normal, numpy_dtype, out, place, poison, special_floats
from .compare import assert_close, assert_same_bits, bits
from .harness import BACKEND, check, compiled, execute, interpret, kir_of
from .segments import everywhere, under

__all__ = ["BACKEND", "LAYOUTS", "NUMPY", "assert_close", "assert_same_bits", "bits", "check", "compiled", "everywhere", "execute",
           "integers", "interpret", "kir_of", "normal", "numpy_dtype", "out", "place", "poison", "special_floats", "under"]
