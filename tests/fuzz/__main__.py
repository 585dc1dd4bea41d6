"""Run whole kernels by number: ``python -m tests.fuzz --seed 1 --count 1000``. Prints every failure with its program."""
from __future__ import annotations

import argparse
import collections
import faulthandler
import os
import sys
import time
import traceback

os.environ.setdefault("INTENT_CACHE", "0")


def main() -> int:
    from . import programs
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--show", action="store_true", help="print the programs")
    parser.add_argument("--mutants", action="store_true", help="programs with a mistake")
    parser.add_argument("--policy", help="programs of this policy only")
    parser.add_argument("--words", help="a file for the words of every refusal")
    parser.add_argument("--shrink", action="store_true", help="print each failure's smallest program")
    options = parser.parse_args()
    if options.policy:
        programs.POLICIES = (options.policy,)
    print(f"seed {options.seed}, programs {options.first} .. {options.first + options.count - 1}", flush=True)
    results: collections.Counter = collections.Counter()
    for k in range(options.first, options.first + options.count):
        faulthandler.dump_traceback_later(120, exit=True, file=sys.stderr)
        with open(f"/tmp/fuzz-{os.getpid()}", "w") as note:
            note.write(f"{options.seed} {k}\n")
        try:
            result = (programs.run_mutant if options.mutants else programs.run_one)(options.seed, k, show=options.show)
            if options.words:
                with open(options.words, "a") as words:
                    words.write(f"{options.seed}/{k} {result}\n")
            result = result.split(":")[0]
        except Exception as error:
            result = type(error).__name__
            faulthandler.cancel_dump_traceback_later()
            print(f"--- seed {options.seed}, program {k}: {result}: {error}", flush=True)
            if result not in ("Illegal", "AssertionError"):
                traceback.print_exc(limit=-6, file=sys.stdout)
            if options.shrink and not options.mutants:
                print(programs.failure_text(options.seed, k, error), flush=True)
        results[result] += 1
    faulthandler.cancel_dump_traceback_later()
    print(f"seed {options.seed}, {options.count} programs: {dict(results)}", flush=True)
    return 0 if set(results) <= {"ok", "overflow", "refused", "obligation", "python", "compiled"} else 1


if __name__ == "__main__":
    sys.exit(main())
