"""KIR: what the program means, to the bit. See ``ops.py`` for the operations and ``text.py`` for the grammar."""
from .ir import Builder, Kernel, Loc, Op, Region, Value, walk
from .text import ParseError, parse_kernel, print_kernel
from .types import Buffer, Domain, Extent, Scalar, Tensor, View, shape_of, tensor_or_scalar
from .verify import VerifyError, verify

__all__ = ["Buffer", "Builder", "Domain", "Extent", "Kernel", "Loc", "Op", "ParseError", "Region", "Scalar", "Tensor", "Value",
           "VerifyError", "View", "parse_kernel", "print_kernel", "shape_of", "tensor_or_scalar", "verify", "walk"]
