"""How a host starts the kernels of a generated launch: blocks, grids, shared memory and arguments, as data."""
from __future__ import annotations

import re

_SIZES = {"b8": 1, "b16": 2, "b32": 4, "b64": 8, "u8": 1, "u16": 2, "u32": 4, "u64": 8, "s8": 1, "s16": 2, "s32": 4, "s64": 8,
          "f32": 4, "f64": 8}
_GRIDS = {"items": "ceil(points / block)", "groups": "points"}


def launch_facts(plan: dict, ptx: str) -> dict:
    """``kernels``: for every kernel its block, the rule of its grid, where its arena lies, its shared memory in bytes (``static`` by the
    kernel; ``dynamic`` is given by the launch) and its arguments in order. A grid's rule counts ``points``, the product of the
    stage's grid in the plan; one with an arena in global memory may be any smaller number, and its arena has a part for each
    block or work-item that is started."""
    kernels = {}
    for step in _steps(plan["steps"]):
        name, arena = step["kernel"], step.get("space")
        arguments = ["frame", *step["uses"], *(["arena"] if arena == "global" else []), *(["points"] if step["do"] == "stage" else [])]
        kernels[name] = {
            "block": [1 if step["do"] == "run" else plan["group"], 1, 1],
            "grid": "1" if step["do"] == "run" else _GRIDS[step["by"]] + (" or fewer" if arena == "global" else ""),
            "arena": arena,
            "shared": {"static": _static_shared(ptx, name), "dynamic": "arena" if arena == "local" else 0},
            "arguments": arguments,
        }
    return {"entry": None, "kernels": kernels}


def _steps(steps):
    """Those that start a kernel."""
    for s in steps:
        if s["do"] in ("run", "stage"):
            yield s
            if s.get("instead"):
                yield s["instead"]
        for inner in ("body", "then", "else"):
            yield from _steps(s.get(inner, ()))


def _static_shared(ptx: str, kernel: str) -> int:
    """Bytes of the shared variables that the kernel's own text names."""
    begin = re.search(rf"\.entry {kernel}\b", ptx)
    if begin is None:
        return 0
    rest = ptx[begin.start():]
    end = re.search(r"^}", rest, re.MULTILINE)
    body, total = rest[:end.end() if end else None], 0
    for align, kind, name, count in re.findall(r"(?<!extern )\.shared \.align (\d+) \.(\w+) ([\w$.]+)(?:\[(\d+)\])?;", ptx):
        if re.search(rf"(?<![\w$]){re.escape(name)}(?![\w$])", body):
            total = -(-total // int(align)) * int(align) + _SIZES[kind] * int(count or 1)
    return total
