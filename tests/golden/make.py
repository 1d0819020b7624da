#!/usr/bin/python3
"""Writes the golden files of this folder or, with --check, compares them with newly computed values.

Needs PyTorch 1.13 or later (Debian: python3-torch) and takes a few seconds. README.md describes the
files. On one machine they are reproducible to the bit; on others, rounding may differ.
"""
import argparse
import pathlib
import sys

try:
    import numpy as np
    import torch
except ImportError as error:
    print(f"{error}: install python3-torch", file=sys.stderr)
    sys.exit(77)  # ctest: skipped

import layers
import ops
import optimisers
import tensorfile
import trajectory

HERE = pathlib.Path(__file__).resolve().parent
GROUPS = {"ops": ops, "layers": layers, "optim": optimisers, "trajectory": trajectory}
TOLERANCE = 1e-11


def differences(path, group):
    """Yields the differences between the file and the group, one line each."""
    tensors, metadata = tensorfile.read(path)
    if metadata != group.metadata:
        yield f"{path.name}: cases or attributes differ"
    for name in sorted(tensors.keys() ^ group.tensors.keys()):
        yield f"{path.name}: {name} is missing from the file or from the new values"
    for name in sorted(tensors.keys() & group.tensors.keys()):
        old, new = tensors[name], group.tensors[name]
        if old.shape != new.shape or old.dtype != new.dtype:
            yield f"{path.name}: {name}: shape or type differs"
        elif not np.allclose(old, new, rtol=TOLERANCE, atol=TOLERANCE):
            yield f"{path.name}: {name}: differs by {np.max(np.abs(old - new)):.3g}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare the files instead of writing them")
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # the order of additions must not depend on the machine
    failures = []
    for name, module in GROUPS.items():
        group, path = module.make(), HERE / f"{name}.safetensors"
        if arguments.check:
            failures += differences(path, group)
        else:
            tensorfile.write(path, group.tensors, group.metadata)
        print(f"{path.name}: {len(group.metadata)} cases, {len(group.tensors)} tensors",
              file=sys.stderr)
    print("\n".join(failures), end="\n" if failures else "", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
