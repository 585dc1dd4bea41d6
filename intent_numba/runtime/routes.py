"""Which native call does a keyword call, or one with Constexprs, amount to? Forms of calls are few, so each is worked out once."""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Route:
    """How calls of one form map to the native entry: which of the given values are Constexprs, and the order of the others."""
    fixed: tuple[int, ...]
    order: tuple[int, ...]

    @staticmethod
    def of(params, positional: int, keywords: tuple[str, ...]) -> "Route | None":
        """``params`` are those that the call may pass. None for a form that is wrong, or that leaves a runtime parameter to its
        default: such a call is for the Python path."""
        by_position = [p.name for p in params if not p.keyword_only]
        names = (*by_position[:positional], *keywords)
        place = {name: i for i, name in enumerate(names)}
        known = {p.name for p in params}
        if positional > len(by_position) or len(place) < len(names) or not place.keys() <= known:
            return None
        if any(p.name not in place for p in params if p.kind != "constexpr"):
            return None
        return Route(tuple(place[p.name] for p in params if p.kind == "constexpr" and p.name in place),
                    tuple(place[p.name] for p in params if p.kind != "constexpr"))

    def constexpr_key(self, given: tuple) -> tuple | None:
        """Distinguishes 0 from False and the two zeros, as specialisations do; None for what is no Constexpr value."""
        try:
            key = tuple([(type(v), v or repr(v)) for v in [given[i] for i in self.fixed]])
            hash(key)
        except (TypeError, ValueError):
            return None
        return key
