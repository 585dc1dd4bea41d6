"""Where does compiled code survive the process, and what if a file is damaged or two processes write it?

One file per specialisation, named by its fingerprint: a checksum, a JSON header, the object code. Writing is a rename,
so a reader sees a whole file or none. A file that is damaged or foreign counts as absent and is written anew.
INTENT_CACHE_DIR moves the directory, INTENT_CACHE=0 disables it; trouble with the directory never stops a compilation.
"""
from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

_MAGIC = b"intent-numba 1\n"
_SUFFIX = ".intent"


@dataclass(frozen=True)
class Entry:
    """``header``: JSON-like facts about the code; ``code``: the object file."""
    header: dict
    code: bytes


def enabled() -> bool:
    return os.environ.get("INTENT_CACHE", "1") not in ("0", "off", "no", "")


def directory() -> Path:
    chosen = os.environ.get("INTENT_CACHE_DIR")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "intent_numba"


def load(key: str) -> Entry | None:
    """The entry of that fingerprint, or None where there is none that is whole."""
    if not enabled():
        return None
    try:
        data = _path(key).read_bytes()
    except (OSError, RuntimeError):
        return None
    return _decode(data)


def store(key: str, entry: Entry) -> None:
    """Keep an entry; silently does nothing where the directory cannot be written."""
    if not enabled():
        return
    temporary = None
    try:
        place = _path(key)
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=place.parent, prefix=".new-")
        with os.fdopen(handle, "wb") as f:
            f.write(_encode(entry))
        os.replace(temporary, place)
    except (OSError, RuntimeError):
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def discard(key: str) -> None:
    """Forget an entry whose code turned out to be unusable."""
    with contextlib.suppress(OSError, RuntimeError):
        _path(key).unlink()


def entries() -> list[Path]:
    """Every file of the cache, damaged ones included."""
    try:
        return sorted(p for p in directory().iterdir() if p.suffix == _SUFFIX or p.name.startswith(".new-"))
    except OSError:
        return []


def clear() -> int:
    """Remove every file of the cache; returns how many went."""
    removed = 0
    for path in entries():
        with contextlib.suppress(OSError):
            path.unlink()
            removed += 1
    return removed


def _path(key: str) -> Path:
    return directory() / (key + _SUFFIX)


def _encode(entry: Entry) -> bytes:
    header = json.dumps(entry.header, sort_keys=True).encode()
    payload = len(header).to_bytes(4, "little") + header + entry.code
    return _MAGIC + hashlib.sha256(payload).digest() + payload


def _decode(data: bytes) -> Entry | None:
    start = len(_MAGIC) + 32
    payload = data[start:]
    if data[:len(_MAGIC)] != _MAGIC or len(payload) < 4 or hashlib.sha256(payload).digest() != data[len(_MAGIC):start]:
        return None
    end = 4 + int.from_bytes(payload[:4], "little")
    return Entry(json.loads(payload[4:end]), payload[end:])
