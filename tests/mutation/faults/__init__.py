"""Typical programming errors: each is one replacement in one file, with the tests that should detect it.

`old` occurs exactly once in the file. `tests` are names of CTest tests; "nn_f64:golden" selects the suite golden of
nn_f64. These tests run first; if they pass, all remaining tests run. If a change of the code removes `old`,
`mutate --fit` fails: rewrite the fault for the new code.
"""
from typing import NamedTuple


class Fault(NamedTuple):
    name: str
    file: str
    old: str
    new: str
    tests: tuple


FAULTS = []


def fault(name, file, old, new, *tests):
    FAULTS.append(Fault(name, file, old, new, tests))


from . import autograd, data, decode_and_metrics, exchange, gradcheck, kernels, nn_and_optim, train, views  # noqa: E402,F401
