"""Where the statements of a lowering go, and in what state they are."""
from __future__ import annotations

from dataclasses import dataclass, field

from ..kir import Value
from ..task import Resource, Stmt
from .uses import Group

OUTSIDE = -1
"""The position of a use that stands for no operation of its block."""


@dataclass
class Context:
    """Where statements go. ``top``: host level of the launch, else inside a task."""
    top: bool
    stmts: list[Stmt]
    resources: list[Resource]
    group: Group = field(default_factory=Group)
    touched: dict[Value, tuple[str, ...]] = field(default_factory=dict)
    made: list[str] = field(default_factory=list)
