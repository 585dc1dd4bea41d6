"""What both mappers share: how the statements of a task program become LLVM text once somebody has said where they run.

An ``Env`` knows the lanes, the storage of every resource and the function being written. Expressions, memory accesses, loop nests,
control flow, reductions, scans, contractions and updates are written against it, with a tile of one or more lanes. ``map_vector`` runs
them on the cores of a CPU, ``map_simt`` by work-items with an ``Env`` of their own.
"""
