"""Python function to KIR. ``build_kernel`` is the only entry."""


def build_kernel(pyfunc, constexprs=None, policy="strict", obligations=False):
    """See ``frontend.kernel.build_kernel``; Numba is imported on the first call."""
    from .kernel import build_kernel as build
    return build(pyfunc, constexprs, policy, obligations)
