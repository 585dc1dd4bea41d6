"""``python -m benchmarks [--only WORD] [--json FILE]``: a table of what was measured against its bar; exit status 1 if one fails."""
from __future__ import annotations

import argparse
import json
import os
import sys

# Read when NumPy and Numba are first imported.
os.environ.update(OPENBLAS_NUM_THREADS="2", OMP_NUM_THREADS="2", NUMBA_NUM_THREADS="2")
for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    os.environ.pop(name, None)


def main() -> int:
    from . import harness, latency, memory, spirv
    from .cases import CASES

    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Intent kernels against Numba and NumPy, two threads each.")
    parser.add_argument("--only", metavar="WORD", default="", help="only what has WORD in its name ('memory', 'call' too)")
    parser.add_argument("--json", metavar="FILE", help="write the results as JSON too")
    args = parser.parse_args()

    results, broken = [], 0
    sources = [(case.name, lambda case=case: [harness.run(case)]) for case in CASES + spirv.CASES]
    sources += [("memory", memory.results), ("first call, cached call, overhead of a call", latency.results)]
    for name, measure in sources:
        if args.only not in name:
            continue
        if name.startswith("spirv") and spirv.missing():
            print(f"skipping {name}: {spirv.missing()}", file=sys.stderr)
            continue
        print(f"running {name}", file=sys.stderr)
        try:
            results += measure()
        except Exception as error:
            broken += 1
            print(f"  {name} did not run: {type(error).__name__}: {error}", file=sys.stderr)

    print(harness.table(results))
    if args.json:
        with open(args.json, "w") as file:
            json.dump([r.as_json() for r in results], file, indent=1)
    return 1 if broken or any(r.passed is False for r in results) else 0


if __name__ == "__main__":
    sys.exit(main())
