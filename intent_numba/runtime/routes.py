"""Which native call does a keyword call, or one with Constexprs, amount to? Forms of calls are few, so each is worked out once."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter


@dataclass(frozen=True)
class Route:
    """How calls of one form (positional count, keyword names) map to the native entry. ``fixed`` takes the Constexprs out of the
    given values, ``order`` the others in the entry's order; ``zeros``: a Constexpr is a float, so its zeros differ."""
    fixed: Callable[[tuple], tuple]
    order: Callable[[tuple], tuple]
    zeros: bool

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
        constexprs = [p for p in params if p.kind == "constexpr" and p.name in place]
        return Route(_take([place[p.name] for p in constexprs]), _take([place[p.name] for p in params if p.kind != "constexpr"]),
                     any(p.type is float for p in constexprs))

    def key(self, form: tuple, given: tuple) -> tuple:
        """Names the specialisation: equal for equal Constexprs of equal types. May be unhashable when the call is wrong."""
        fixed = self.fixed(given)
        key = (form, fixed, *map(type, fixed))
        return (*key, repr(fixed)) if self.zeros else key


def _take(places: list[int]) -> Callable[[tuple], tuple]:
    """A fast function from a tuple to the tuple of its items at ``places``."""
    start = places[0] if places else 0
    if places == list(range(start, start + len(places))):
        return itemgetter(slice(start, start + len(places)))      # also what makes one item, or none, a tuple
    return itemgetter(*places)
