"""Everything an author uses inside a kernel, as ``import intent_numba.language as I``. Spec: SUPPLEMENT 2.

The operations are stubs: they carry signature and documentation, and raise ``intent.LanguageError`` outside a kernel.
"""
from .annotations import Constexpr, Enum, In, InOut, Out, constraints
from .control import assume_in_bounds, domain, indices, members, parallel, ragged
from .dtypes import ALL as _ALL_DTYPES
from .dtypes import DType, dtype
from .formats import e2m1, e4m3, e8m0, quant, sparse
from .memory import atomic, buffer, mutable_load, random, scatter_reduce, scatter_unique, store
from .pointwise import (abs, add, asin, bitcast, cast, ceil, clamp, cos, erf, erfc, exp, exp2, fdiv, floor, floor_divide, fma, i0,
                        lgamma, log, log1p, logical_not, mask, maximum, maximum_num, minimum, minimum_num, multiply, pow, power,
                        relu, remainder, rsqrt, saturating_cast, select, sigmoid, sin, sqrt, subtract, tanh)
from .structured import (arg_reduce, contract, cummax, cumsum, dot, histogram, matmul, matvec, outer, quantize, quantized_dot,
                         reduce, region_fold, region_scan, scaled_contract, scaled_matmul, scan, sparse_contract, sparse_matmul,
                         vecmat)
from .values import full, gather, join, permute, record, reshape, transpose, zeros

bool, index = _ALL_DTYPES["bool"], _ALL_DTYPES["index"]
i8, i16, i32, i64 = (_ALL_DTYPES[n] for n in ("i8", "i16", "i32", "i64"))
u8, u16, u32, u64 = (_ALL_DTYPES[n] for n in ("u8", "u16", "u32", "u64"))
f16, bf16, f32, f64 = (_ALL_DTYPES[n] for n in ("f16", "bf16", "f32", "f64"))
f8e4m3fn, f8e5m2 = _ALL_DTYPES["f8e4m3fn"], _ALL_DTYPES["f8e5m2"]

inf = float("inf")
nan = float("nan")
pi = 3.141592653589793
LOG2E = 1.4426950408889634

__all__ = [
    "Constexpr", "DType", "Enum", "In", "InOut", "LOG2E", "Out", "abs", "add", "arg_reduce", "asin", "assume_in_bounds", "atomic",
    "bf16", "bitcast", "bool", "buffer", "cast", "ceil", "clamp", "constraints", "contract", "cos", "cummax", "cumsum", "domain",
    "dot", "dtype", "e2m1", "e4m3", "e8m0", "erf", "erfc", "exp", "exp2", "f16", "f32", "f64", "f8e4m3fn", "f8e5m2", "fdiv",
    "floor", "floor_divide", "fma", "full", "gather", "histogram", "i0", "i16", "i32", "i64", "i8", "index", "indices", "inf",
    "join", "lgamma", "log", "log1p", "logical_not", "mask", "matmul", "matvec", "maximum", "maximum_num", "members", "minimum",
    "minimum_num", "multiply", "mutable_load", "nan", "outer", "parallel", "permute", "pi", "pow", "power", "quant", "quantize",
    "quantized_dot", "ragged", "random", "record", "reduce", "region_fold", "region_scan", "relu", "remainder", "reshape", "rsqrt",
    "saturating_cast", "scaled_contract", "scaled_matmul", "scan", "scatter_reduce", "scatter_unique", "select", "sigmoid", "sin",
    "sparse", "sparse_contract", "sparse_matmul", "sqrt", "store", "subtract", "tanh", "transpose", "u16", "u32", "u64", "u8",
    "vecmat", "zeros",
]
