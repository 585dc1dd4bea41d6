"""An ordered loop around one stage becomes one stage around the loop.

Where all of a top-level loop is one stage, and each task of it touches only its own part of whatever the stage writes, a task may
run all iterations by itself: one launch instead of one per iteration, and carries stay in its cache. Loops that carry scalars
of the launch keep their form.
"""
from __future__ import annotations

from ..task import For, Free, Phase, Resource, Stage, Store
from .uses import accesses, load_coords, loads, sink_nodes, targets


def interchange(loop: For, resources: list[Resource], before: set[str]) -> tuple[Stage, list[Free]] | None:
    """The stage that runs ``loop`` in each task and the workspace to free behind it, or None. ``before`` names the resources that
    existed before the loop; cells declared since then are private to it and move into the stage."""
    stages = [s for s in loop.body if isinstance(s, Stage)]
    frees = [s for s in loop.body if isinstance(s, Free)]
    cells = [s for s in loop.body if isinstance(s, Phase)]
    if loop.stop or len(stages) != 1 or len(stages) + len(frees) + len(cells) != len(loop.body):
        return None
    (stage,) = stages
    if not stage.tasks or stage.kind != "phases" or not _keeps_apart(stage):
        return None
    ahead = loop.body[:loop.body.index(stage)]
    if any(c not in ahead for c in cells):
        return None
    private = {r.name for r in resources if r.kind == "cell" and r.name not in before} | {loop.var}
    sinks = [s for c in cells for s in c.sinks]
    if not all(isinstance(s, Store) for s in sinks) or not {t for s in sinks for t in targets(s)} <= private:
        return None
    reading = {n.attr for s in sinks for n in loads(sink_nodes(s))}
    if reading & set(stage.writes):
        return None
    freed = {f.resource for f in frees}
    shapes = [a.extent for a in stage.tasks] + [e for r in stage.resources for e in r.shape]
    shapes += [e for r in resources if r.name in freed for e in r.shape]
    if any(e.symbols & private for e in shapes):
        return None
    moved = [r for r in resources if r.name in private]
    resources[:] = [r for r in resources if r.name not in private]
    loop.body = cells + stage.body
    reads = tuple(n for n in dict.fromkeys((*stage.reads, *sorted(reading))) if n not in private)
    return Stage(stage.name, stage.tasks, [loop], moved + stage.resources, "phases", reads, stage.writes, 8 * stage.cost), frees


def _keeps_apart(stage: Stage) -> bool:
    """Whether each task touches only its own part of what the stage writes: every task axis is one coordinate of it, the same one
    wherever it is accessed."""
    touched, written = [], set()

    def visit(body):
        for s in body:
            if isinstance(s, Phase):
                for reads, writes in map(accesses, s.sinks):
                    touched.extend((*reads, *writes))
                    written.update(name for name, _ in writes)
            else:
                nodes = [getattr(s, f) for f in ("cond", "begin", "step") if hasattr(s, f)]
                touched.extend((n.attr, load_coords(n)) for n in loads(nodes))
                for part in ("body", "then", "orelse"):
                    visit(getattr(s, part, ()))
    visit(stage.body)
    for name in written - {r.name for r in stage.resources}:
        mine = [coords for n, coords in touched if n == name]
        for a in stage.tasks:
            if not set.intersection(*({k for k, c in enumerate(coords) if c.op == "axis" and c.attr == a.name} for coords in mine)):
                return False
    return True
