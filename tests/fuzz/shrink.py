"""What is the smallest program that still fails? Statements are deleted, blocks opened, expressions replaced by their parts, and
parameters dropped, as long as a test still says that the failure is there.
"""
from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from .grammar import Program

MOST_TRIES = 600


def shrunk(program: Program, fails: Callable[[Program], bool], tries: int = MOST_TRIES) -> Program:
    """Reduce greedily until no step helps or the tries are used up."""
    best, left = program, tries
    seen = {program.source}
    progress = True
    while progress and left > 0:
        progress = False
        for candidate in candidates(best):
            if candidate.source in seen or len(candidate.source) >= len(best.source):
                continue
            seen.add(candidate.source)
            left -= 1
            if fails(candidate):
                best, progress = candidate, True
                break
            if left <= 0:
                break
    return best


def candidates(program: Program) -> Iterator[Program]:
    """Smaller programs, the boldest first."""
    tree = ast.parse(program.source)
    yield from without_parameters(program)
    for size in (16, 8, 4, 2, 1):
        yield from edited(program, tree, deletions(tree, size))
    yield from edited(program, tree, openings(tree))
    yield from edited(program, tree, hoists(tree))


def edited(program: Program, tree, edits) -> Iterator[Program]:
    """The program after each edit, which works on a copy of the tree by paths."""
    for edit in edits:
        own = copy.deepcopy(tree)
        edit(own)
        yield replace(program, source=ast.unparse(ast.fix_missing_locations(own)))


def without_parameters(program: Program) -> Iterator[Program]:
    """Parameters that the text names only once, in the signature."""
    for p in program.parameters:
        if len(re.findall(rf"\b{p.name}\b", program.source)) == 1:
            tree = ast.parse(program.source)
            kernel = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "kernel")
            kernel.args.args = [a for a in kernel.args.args if a.arg != p.name]
            yield replace(program, source=ast.unparse(tree), parameters=[q for q in program.parameters if q is not p])


Path = tuple


def at(tree, path: Path):
    for step in path:
        tree = tree[step] if isinstance(step, int) else getattr(tree, step)
    return tree


def paths(node, path: Path = ()) -> Iterator[tuple[Path, object]]:
    """Every node and every list of nodes, outermost first."""
    yield path, node
    if isinstance(node, list):
        for i, child in enumerate(node):
            yield from paths(child, (*path, i))
    elif isinstance(node, ast.AST):
        for name, child in ast.iter_fields(node):
            if isinstance(child, (ast.AST, list)):
                yield from paths(child, (*path, name))


def deletions(tree, size: int):
    """Runs of statements, from the end, where later ones need earlier ones."""
    for path, node in paths(tree):
        if isinstance(node, list) and len(node) >= size and all(isinstance(s, ast.stmt) for s in node):
            for start in range(len(node) - size, -1, -max(1, size // 2)):
                yield lambda own, path=path, start=start: delete(at(own, path), start, size, path)


def delete(block: list, start: int, size: int, path: Path) -> None:
    del block[start:start + size]
    if not block and path[-1] == "body" and path != ("body",):
        block.append(ast.Pass())


def openings(tree):
    """A block in place of the statement that holds it."""
    for path, node in paths(tree):
        if isinstance(node, (ast.If, ast.For, ast.While)):
            for arm in ("body", "orelse"):
                if getattr(node, arm):
                    yield lambda own, path=path, arm=arm: open_block(at(own, path[:-1]), path[-1], arm)


def open_block(block: list, i: int, arm: str) -> None:
    block[i:i + 1] = getattr(block[i], arm)


def hoists(tree):
    """A part of an expression in place of the whole; an argument left out of a call."""
    for path, node in paths(tree):
        if isinstance(node, ast.expr) and len(path) > 1 and not isinstance(node, (ast.Name, ast.Constant)) and "decorator_list" not in path:
            for below, child in paths(node):
                if below and isinstance(child, ast.expr) and len(below) < 5 and not isinstance(getattr(child, "ctx", None), ast.Store):
                    yield lambda own, path=path, below=below: replace_with(own, path, below)
        if isinstance(node, list) and node and all(isinstance(k, ast.keyword) for k in node):
            for i in range(len(node)):
                yield lambda own, path=path, i=i: at(own, path).pop(i)


def replace_with(own, path: Path, below: Path) -> None:
    child = at(own, (*path, *below))
    parent, last = at(own, path[:-1]), path[-1]
    if isinstance(last, int):
        parent[last] = child
    else:
        setattr(parent, last, child)
