"""Programs with a mistake: one or two small edits of a legal program's syntax tree, such as an author makes."""
from __future__ import annotations

import ast
import copy

DTYPES = ("bool", "index", "i8", "i16", "i32", "i64", "u8", "u64", "f16", "bf16", "f32", "f64", "f8e4m3fn", "f8e5m2")
WRONG_NAMES = ("expp", "shape", "x", "dtype", "sum", "T", "astype", "item", "0")
CONSTANTS = (-1, 0, 1, 2, 5, 2.5, True, None, "x", -2, 300)


def mutant(source: str, rnd) -> str:
    tree = ast.parse(source)
    for _ in range(rnd.choice((1, 1, 1, 2))):
        for _ in range(8):
            if rnd.choice(MUTATIONS)(tree, rnd):
                break
    return ast.unparse(ast.fix_missing_locations(tree))


def inside(tree, kind) -> list:
    """Nodes of a kind in bodies of functions: not imports, decorators and annotations."""
    return [n for f in tree.body if isinstance(f, ast.FunctionDef) for s in f.body for n in ast.walk(s) if isinstance(n, kind)]


def one(rnd, nodes):
    return rnd.choice(nodes) if nodes else None


def slots(tree) -> list[tuple]:
    """(object, field, position) of every expression that another could stand for."""
    found = []
    for parent in inside(tree, ast.AST):
        for name, child in ast.iter_fields(parent):
            if isinstance(child, ast.expr) and not isinstance(getattr(child, "ctx", None), ast.Store) and name != "func":
                found.append((parent, name, None))
            elif isinstance(child, list):
                found += [(parent, name, i) for i, c in enumerate(child)
                          if isinstance(c, ast.expr) and not isinstance(getattr(c, "ctx", None), ast.Store)]
    return found


def get(slot):
    parent, name, i = slot
    return getattr(parent, name) if i is None else getattr(parent, name)[i]


def put(slot, node) -> None:
    parent, name, i = slot
    if i is None:
        setattr(parent, name, node)
    else:
        getattr(parent, name)[i] = node


def other_name(tree, rnd):
    node = one(rnd, [n for n in inside(tree, ast.Name) if n.id not in ("I", "intent")])
    if node is not None:
        node.id = rnd.choice([n.id for n in inside(tree, ast.Name)] + ["undefined", "a0", "kernel", "len", "M"])
    return node


def other_constant(tree, rnd):
    node = one(rnd, inside(tree, ast.Constant))
    if node is not None:
        node.value = rnd.choice(CONSTANTS)
    return node


def other_dtype(tree, rnd):
    node = one(rnd, [n for n in inside(tree, ast.Attribute) if n.attr in DTYPES])
    if node is not None:
        node.attr = rnd.choice(DTYPES)
    return node


def other_attribute(tree, rnd):
    node = one(rnd, [n for n in inside(tree, ast.Attribute) if not isinstance(n.ctx, ast.Store)])
    if node is not None:
        node.attr = rnd.choice([*WRONG_NAMES[:-1], *(n.attr for n in inside(tree, ast.Attribute)
                                                     if not isinstance(n.value, ast.Attribute))])
    return node


def no_conversion(tree, rnd):
    slot = one(rnd, [s for s in slots(tree) if isinstance(get(s), ast.Call) and get(s).args])
    if slot is not None:
        put(slot, get(slot).args[0])
    return slot


def swapped_operands(tree, rnd):
    node = one(rnd, inside(tree, (ast.BinOp, ast.Call)))
    if isinstance(node, ast.BinOp):
        node.left, node.right = node.right, node.left
    elif node is not None and len(node.args) > 1:
        node.args[0], node.args[1] = node.args[1], node.args[0]
    return node


def other_operator(tree, rnd):
    node = one(rnd, inside(tree, ast.BinOp))
    if node is not None:
        node.op = rnd.choice((ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.MatMult, ast.BitAnd, ast.Pow))()
    return node


def other_expression(tree, rnd):
    """Any expression in the place of another."""
    found = slots(tree)
    if len(found) < 2:
        return None
    put(rnd.choice(found), copy.deepcopy(get(rnd.choice(found))))
    return True


def fewer_or_more_axes(tree, rnd):
    node = one(rnd, inside(tree, ast.Subscript))
    if node is None:
        return None
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if rnd.random() < 0.5 and len(parts) > 1:
        parts = parts[:-1]
    else:
        parts = [*parts, rnd.choice((ast.Slice(), ast.Constant(0), ast.Constant(None), ast.Slice(step=ast.Constant(2))))]
    node.slice = ast.Tuple(parts, ast.Load()) if len(parts) != 1 else parts[0]
    return node


def lost_argument(tree, rnd):
    node = one(rnd, [n for n in inside(tree, ast.Call) if n.args or n.keywords])
    if node is not None:
        (rnd.choice([x for x in (node.args, node.keywords) if x])).pop()
    return node


def moved_statement(tree, rnd):
    """Two neighbours exchanged, one left out, or one said twice."""
    functions = [f for f in tree.body if isinstance(f, ast.FunctionDef)]
    blocks = [b for f in functions for n in ast.walk(f) for b in (getattr(n, "body", None), getattr(n, "orelse", None))
              if isinstance(b, list) and len(b) > 1]
    block = one(rnd, blocks)
    if block is None:
        return None
    i = rnd.randrange(len(block) - 1)
    how = rnd.randrange(3)
    if how == 0:
        block[i], block[i + 1] = block[i + 1], block[i]
    elif how == 1:
        del block[i]
    else:
        block.insert(i, block[i])
    return block


FOREIGN = ("[1, 2]", "{1: 2}", "(lambda: 1)()", "[i for i in range(3)]", "f'{1}'", "print(1)", "None", "...", "1j", "a0.T", "I", "I.f32",
           "(1, 2, 3)", "range(3)", "I.domain(0, 3)", "not a0", "a0 is None", "1 if a0 else 2", "I.inf", "a0")
"""What kernels do not have, or not everywhere."""


def foreign_construct(tree, rnd):
    slot = one(rnd, slots(tree))
    if slot is not None:
        put(slot, ast.parse(rnd.choice(FOREIGN), mode="eval").body)
    return slot


MUTATIONS = (other_name, other_constant, other_dtype, other_attribute, no_conversion, swapped_operands, other_operator, other_expression,
             other_expression, fewer_or_more_axes, lost_argument, moved_statement, foreign_construct)
