"""Intent kernels against Numba and NumPy on this machine: ``python -m benchmarks``. Never part of the tests.

Every contender runs on two threads, in one process, in turns, on the same arrays, with outputs allocated beforehand; the
medians are compared. The bars are what the project holds itself to.
"""
