"""The program while it grows: what all of it shares, and what one block of statements can see."""
from __future__ import annotations

from dataclasses import dataclass, field, replace

from .types import STORED, Parameter, Place, Value, is_float

LITERALS = {"float": ("0.5", "-1.25", "2.0", "0.0", "3.0", "-0.75", "1.0"), "int": ("1", "3", "7", "100", "0")}


class Writer:
    """One program. ``rnd`` has the interface of random.Random."""

    def __init__(self, rnd, dtypes=STORED, policy="strict"):
        self.rnd, self.dtypes, self.policy = rnd, dtypes, policy
        self.helpers: list[str] = []
        self.parameters: list[Parameter] = []
        self.nests: set[tuple[str, ...]] = set()
        self.unordered = False
        self.costly = 2
        self.statements = rnd.randint(2, 9)
        self.names = 0

    def name(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def chance(self, p: float) -> bool:
        return self.rnd.random() < p

    def pick(self, options):
        return self.rnd.choice(list(options))


@dataclass
class Block:
    """Statements at one indentation. ``points`` are the coordinates of the enclosing loops, with the extent of each: outputs get an
    axis for every one of them. ``coords`` are scalars known to lie inside an extent."""
    writer: Writer
    extents: tuple[str, ...] = ()
    values: list[Value] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    coords: list[tuple[str, str]] = field(default_factory=list)
    points: tuple[tuple[str, str], ...] = ()
    domains: dict[str, str] = field(default_factory=dict)
    """Names of domains and subregions, which are extents of their own, with the extent that bounds them."""
    variables: set[str] = field(default_factory=set)
    """Names that a statement here may bind again."""
    positive: set[str] = field(default_factory=set)
    updates: dict[str, str] = field(default_factory=dict)
    """Inside a parallel: the one kind of update of each place that all points share."""
    pure: bool = False
    kernel: bool = True
    """Not the body of a helper: the kernel's parameters can be seen."""
    loop: str = ""
    """The innermost loop whose body this is: "for", "parallel" or none."""
    depth: int = 0
    lines: list[str] = field(default_factory=list)

    def inner(self, **changes) -> Block:
        """A block inside this one: what is defined there stays there."""
        own = dict(values=list(self.values), coords=list(self.coords), domains=dict(self.domains), variables=set(self.variables),
                   positive=set(self.positive), places=list(self.places), lines=[], depth=self.depth + 1)
        return replace(self, **{**own, **changes})

    def add(self, *lines: str) -> None:
        self.lines += lines

    def nest(self, head: str, block: Block) -> None:
        self.lines += [head, *("    " + line for line in block.lines or ["pass"])]

    # ---- choices

    def chance(self, p: float) -> bool:
        return self.writer.chance(p)

    def pick(self, options):
        return self.writer.pick(options)

    def name(self, prefix: str = "v") -> str:
        return self.writer.name(prefix)

    def find(self, test=lambda v: True) -> Value | None:
        """A visible value, more often a recent one."""
        found = [v for v in self.values if test(v)]
        return self.pick(found[-6:] if self.chance(0.6) else found) if found else None

    def tensor(self, test=lambda v: True) -> Value | None:
        return self.find(lambda v: v.rank > 0 and test(v))

    def literal(self, dt: str) -> str:
        return self.pick(("True", "False") if dt == "bool" else LITERALS["float" if is_float(dt) else "int"])

    def nameable(self, shape) -> bool:
        """Can a text of this block spell the extents?"""
        return all(e.isdigit() or e in self.extents or e in self.domains for e in shape or ())

    # ---- definitions

    def let(self, text: str, dt: str, shape=None) -> Value:
        name = self.name()
        self.add(f"{name} = {text}")
        self.variables.add(name)
        return self.know(Value(name, dt, shape))

    def know(self, value: Value) -> Value:
        self.values.append(value)
        return value

    def witness(self, shape) -> Value | None:
        return self.find(lambda v: v.shape == shape)
