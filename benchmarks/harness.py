"""How contenders are timed and how results are judged and shown."""
from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

MIN_ROUNDS, MAX_ROUNDS = 7, 60
SECONDS = 3.0


@dataclass(frozen=True)
class Case:
    """``make()`` gives contender name -> call, ``subject`` among them, and a check that raises when the subject's result is wrong.

    ``bar`` is the smallest accepted (time of ``peer``) / (time of the subject); None reports without judging. ``work`` is the
    number of bytes moved or of operations done by one call, in ``unit`` per second.
    """
    name: str
    make: Callable[[], tuple[dict[str, Callable[[], object]], Callable[[], None]]]
    peer: str
    bar: float | None
    work: float
    unit: str
    subject: str = "intent"


@dataclass(frozen=True)
class Result:
    """One line of the report: ``value`` is better the larger it is when ``at_least``, else the smaller."""
    name: str
    value: float
    unit: str
    bar: float | None
    at_least: bool
    detail: str

    @property
    def passed(self) -> bool | None:
        if self.bar is None:
            return None
        return self.value >= self.bar if self.at_least else self.value <= self.bar

    def as_json(self) -> dict:
        return {**asdict(self), "passed": self.passed}


def medians(contenders: dict[str, Callable[[], object]], seconds: float = SECONDS) -> dict[str, float]:
    """Median time of each call; the contenders take turns, so that noise of the machine meets all of them."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for call in contenders.values():
        call()
        call()
    begin = time.perf_counter()
    for n in range(MAX_ROUNDS):
        if n >= MIN_ROUNDS and time.perf_counter() - begin > seconds:
            break
        for name, call in contenders.items():
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def run(case: Case) -> Result:
    contenders, check = case.make()
    contenders[case.subject]()
    check()
    took = medians(contenders)
    each = ", ".join(f"{name} {t * 1e3:.2f} ms" for name, t in took.items())
    own = took[case.subject]
    rate = case.work / own / 1e9
    return Result(case.name, took[case.peer] / own, f"x {case.peer}", case.bar, True, f"{each}; {rate:.1f} {case.unit}")


def table(results: list[Result]) -> str:
    rows = [("what", "measured", "bar", "", "detail")]
    for r in results:
        bar = "" if r.bar is None else f"{'>=' if r.at_least else '<='} {r.bar:g}"
        mark = {None: "-", True: "pass", False: "FAIL"}[r.passed]
        rows.append((r.name, f"{r.value:.2f} {r.unit}", bar, mark, r.detail))
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths)) + "  " + row[4] for row in rows)
