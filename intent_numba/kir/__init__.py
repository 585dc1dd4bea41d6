"""KIR: what the program means, to the bit. See ``ops.py`` for the operations and ``text.py`` for the grammar."""
from .ir import Builder, Kernel, Loc, Op, Region, Value, walk
from .types import Buffer, Domain, Extent, Scalar, Tensor, View, shape_of, tensor_or_scalar

__all__ = ["Buffer", "Builder", "Domain", "Extent", "Kernel", "Loc", "Op", "Region", "Scalar", "Tensor", "Value",
           "View", "shape_of", "tensor_or_scalar", "walk"]
