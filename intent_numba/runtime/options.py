"""What a compilation may be asked for besides the kernel itself. Spec: SUPPLEMENT 8."""
from __future__ import annotations

from dataclasses import dataclass

from ..errors import InvalidOption

NUMERICS = ("source", "relaxed_normalization", "bitwise")
POLICIES = ("strict", "range_preserving", "checked")


@dataclass(frozen=True)
class CompileOptions:
    """Options of one compilation; every one of them is part of the cache key.

    ``numerics``              ``"source"``: the bits of the language's rules. ``"bitwise"``: the same bits on every target and
                              thread count. ``"relaxed_normalization"``: a masked-out segment of an online normalisation may be
                              skipped; the author promises finite operands.
    ``online_reduction``      region operations may be computed in one pass over their source.
    ``checks``                every caller obligation is checked, and the first that is broken, in program order and then in
                              coordinates, raises InvalidInput with source line, operation and coordinates; nothing is written then.
                              For that each call is first rehearsed by the reference interpreter on copies of its arrays, and then
                              launched as ever: the bits are those of the unchecked kernel, the time is that of an interpreter.
                              ``reference.obligations`` lists what is checked and what is not, docs/numerics.md shows it. Not seen are
                              conflicts of points of a parallel loop of which an acquire saw any release of the other. Calls from
                              ``@njit`` code and ``intent.generate`` are refused.
    ``optimization_remarks``  the code generator reports what it kept, recomputed and vectorised.

    Raises InvalidOption for an unknown ``numerics`` and for a flag that is not a bool.
    """
    numerics: str = "source"
    online_reduction: bool = True
    checks: bool = False
    optimization_remarks: bool = False

    def __post_init__(self):
        if self.numerics not in NUMERICS:
            raise InvalidOption(f"numerics is one of {', '.join(map(repr, NUMERICS))}, got {self.numerics!r}")
        for flag in ("online_reduction", "checks", "optimization_remarks"):
            if not isinstance(getattr(self, flag), bool):
                raise InvalidOption(f"{flag} is a bool, got {getattr(self, flag)!r}")


def check_policy(policy: str) -> str:
    """The policy itself. Raises InvalidOption when the language has no policy of that name."""
    if policy not in POLICIES:
        raise InvalidOption(f"policy is one of {', '.join(map(repr, POLICIES))}, got {policy!r}")
    return policy
