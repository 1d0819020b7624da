"""Reads and writes safetensors files (https://github.com/huggingface/safetensors, "Format").

A file consists of the header's length N in 8 bytes, little-endian; N bytes of JSON, padded with spaces to a
multiple of 8; and the tensors' bytes, row-major, little-endian, without gaps. The header maps a name to
{"dtype", "shape", "data_offsets": [begin, end)}, and "__metadata__" to a map of strings.
"""
import json
import os
import struct

import numpy as np

DTYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "U8": "|u1"}
NAMES = {np.dtype(numpy_name): name for name, numpy_name in DTYPES.items()}


def write(path, tensors, metadata=None):
    """Writes {name: numpy array} and {key: string}; replaces the file atomically."""
    header, blobs, begin = {}, [], 0
    if metadata:
        header["__metadata__"] = dict(metadata)
    for name, array in tensors.items():
        array = np.asarray(array, order="C")
        blob = array.tobytes()
        header[name] = {"dtype": NAMES[array.dtype], "shape": list(array.shape),
                        "data_offsets": [begin, begin + len(blob)]}
        begin += len(blob)
        blobs.append(blob)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(f"{path}.part", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.writelines(blobs)
    os.replace(f"{path}.part", path)


def read(path):
    """Returns ({name: numpy array}, {key: string})."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        array = np.frombuffer(data[begin:end], dtype=DTYPES[entry["dtype"]])
        tensors[name] = array.reshape(entry["shape"]).copy()
    return tensors, metadata
