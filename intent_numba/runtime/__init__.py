"""The host side: kernels and artifacts, argument binding, launches, the disk cache, and life inside ``@njit`` code.

``kernel`` and ``artifact`` are what users hold; ``interface``, ``binding``, ``arrays``, ``scalars`` and ``aliasing`` check a call;
``driver``, ``fingerprint``, ``cache`` and ``targets`` make code; ``launch``, ``threads``, ``native``, ``guards``, ``stub`` and
``entries`` start it; ``njit`` and ``pointwise`` are for Numba. Nothing is imported here.
"""
