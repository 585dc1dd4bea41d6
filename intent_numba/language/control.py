"""Domains, parallel iteration and ragged shorthand: stubs with their documentation. Spec: 002 sections 3, 5, 14."""
from __future__ import annotations

from .operation import operation


@operation
def domain(begin, end, step=1):
    """The coordinates begin, begin + step, ... below end, in order; empty when begin >= end. ``step`` is positive.
    ``d[a:b]`` is the subregion of absolute coordinates a .. b-1. Bounds have any integer dtype."""


@operation
def indices(domain):
    """The coordinates of a domain or subregion as a tensor of dtype index."""


@operation
def parallel(domain):
    """Unordered iteration: ``for i in I.parallel(d)`` runs each point once; ``for i, j in I.parallel((d0, d1))`` runs the
    product. No carries, no break; conflicting plain accesses are illegal."""


@operation
def assume_in_bounds(index, resource, *, axis):
    """The author's word that ``index`` lies within ``resource`` along ``axis``. A statement: it has no result."""


@operation
def ragged(outer, members, offsets, indices=None):
    """Groups of members: ``r.outer`` is the domain of groups, ``r[i]`` the subregion
    ``members[offsets[i]:offsets[i + 1]]``, mapped through ``indices`` by ``I.members``. Spec: 002 section 14."""


@operation
def members(group):
    """The coordinates of one ragged group ``r[i]`` as an index tensor: mapped ones when the ragged has indices."""
