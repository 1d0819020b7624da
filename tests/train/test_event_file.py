#!/usr/bin/env python3
"""test_event_file.py HEED: trains with train.tensorboard and reads the event files with an independent reader.

The reader shares no code with heed: it reads TFRecords as described on tensorflow.org, computes CRC-32C bit by bit,
and decodes messages in the wire format of Protocol Buffers. The values for TensorBoard must equal those of
metrics.jsonl.
"""
import json
import math
import os
import shutil
import struct
import subprocess
import sys
import tempfile

CONFIG = """
name: tiny
threads: 1
data: {synthetic: {name: copy, train: 300, valid: 20, test: 20, max_length: 5, symbols: 5}}
tokenizer: {kind: char}
model: {d_model: 16, heads: 2, d_ff: 32, layers: 1}
train: {steps: 20, batch_tokens: 256, validate_every: 10, save_every: 10, log_every: 3, tensorboard: true}
decode: {beam: 1, max_length: 12}
"""


def crc32c(data):
    """CRC-32C, bit by bit, lowest bit first. 0x82F63B78 is its polynomial, 0x1EDC6F41, with the bits reversed."""
    rest = 0xFFFFFFFF
    for byte in data:
        for bit in range(8):
            low = (rest ^ (byte >> bit)) & 1
            rest = (rest >> 1) ^ (0x82F63B78 if low else 0)
    return rest ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(path):
    data, at = open(path, "rb").read(), 0
    while at < len(data):
        length, of_length = struct.unpack_from("<QI", data, at)
        body = data[at + 12:at + 12 + length]
        (of_body,) = struct.unpack_from("<I", data, at + 12 + length)
        assert of_length == masked(data[at:at + 8]), f"{path}: wrong checksum of the length at byte {at}"
        assert of_body == masked(body), f"{path}: wrong checksum of the record at byte {at}"
        yield body
        at += 16 + length
    assert at == len(data), f"{path}: the last record is incomplete"


def varint(data, at):
    value, shift = 0, 0
    while True:
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:
            return value, at


def message(data):
    """Decodes a message to {field: [values]}; numbers of 4 and 8 bytes become floats."""
    fields, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        wire = key & 7
        if wire == 0:
            value, at = varint(data, at)
        elif wire == 2:
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
            assert len(value) == length
        else:
            form, size = {1: ("<d", 8), 5: ("<f", 4)}[wire]
            (value,), at = struct.unpack_from(form, data, at), at + size
        fields.setdefault(key >> 3, []).append(value)
    return fields


def step_of(event):
    return event.get(2, [0])[0]


def shown(folder):
    """The values that TensorBoard shows for a folder: scalars {(tag, step): value} and texts {tag: text}.
    Also returns the names of the files. TensorBoard reads the files in order of name; the session start of a file
    discards the events of earlier files at its step and at later steps."""
    scalars, texts, started, files = {}, {}, False, sorted(os.listdir(folder))
    for name in files:
        events = [message(body) for body in records(os.path.join(folder, name))]
        assert events[0][3] == [b"brain.Event:2"], "the first event must contain the version of the format"
        assert message(events[1][7][0]) == {1: [1]}, "the second event must be a session start"
        assert all(abs(event[1][0] - os.path.getmtime(os.path.join(folder, name))) < 600 for event in events)
        if started:
            scalars = {key: value for key, value in scalars.items() if key[1] < step_of(events[1])}
        started = True
        for event in events[2:]:
            for value in message(event[5][0])[1]:
                value = message(value)
                tag = value[1][0].decode()
                if 2 in value:
                    scalars[tag, step_of(event)] = value[2][0]
                    continue
                tensor, metadata = message(value[8][0]), message(value[9][0])
                assert (tensor[1] == [7] and
                        message(message(tensor[2][0])[2][0]) == {1: [1]}), "the tensor must contain one string"
                assert message(metadata[1][0]) == {1: [b"text"]} and metadata[4] == [2]
                texts[tag] = tensor[8][0].decode()
    return scalars, texts, files


def flattened(record, group):
    for name, value in record.items():
        if isinstance(value, dict):
            yield from flattened(value, f"{group}.{name}")
        elif value is None or isinstance(value, (int, float)):
            yield f"{group}/{name}", value


def recorded(path):
    all_values = {}
    for line in open(path, encoding="utf-8"):
        record = json.loads(line)
        kind, step = record["kind"], record.pop("step")
        all_values.update({(tag, step): value for tag, value in flattened(record, kind)})
    return all_values


def check_equal(run):
    scalars, texts, files = shown(os.path.join(run, "tensorboard"))
    expected = recorded(os.path.join(run, "metrics.jsonl"))
    assert scalars.keys() == expected.keys(), scalars.keys() ^ expected.keys()
    for key, value in expected.items():
        if value is None:
            assert not math.isfinite(scalars[key]), key
        else:
            assert scalars[key] == struct.unpack("<f", struct.pack("<f", value))[0], key
    lines = open(os.path.join(run, "config.yaml"), encoding="utf-8").read().splitlines()
    assert texts["config"].splitlines() == ["    " + line for line in lines], "the config must be a Markdown code block"
    return expected, files


def protoc(run, files):
    """Decodes the same bytes with protoc, if it is installed."""
    if shutil.which("protoc") is None:
        print("protoc is not installed: the check with protoc is skipped")
        return
    for name in files:
        for body in records(os.path.join(run, "tensorboard", name)):
            text = subprocess.run(["protoc", "--decode_raw"], input=body, check=True, stdout=subprocess.PIPE).stdout
            assert text.startswith(b"1: 0x41"), text[:80]  # the time in seconds, a double from 2^17 to 2^33
    print("protoc --decode_raw read every event")


def main():
    heed = os.path.abspath(sys.argv[1])
    assert crc32c(b"123456789") == 0xE3069283 and crc32c(bytes(32)) == 0x8A9136AA  # RFC 3720, B.4
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with open("tiny.yaml", "w", encoding="utf-8") as file:
            file.write(CONFIG)

        def call(*arguments, status=0):
            result = subprocess.run([heed, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
            assert result.returncode == status, result.stderr.decode()

        call("train", "tiny.yaml")
        run = "runs/tiny"
        values, files = check_equal(run)
        assert len(files) == 1
        for tag in ("train/loss", "train/nll", "train/lr", "train/gradient_norm", "train/tokens_per_s",
                    "train.gradient_norms/encoder.layers.0", "train.gradient_norms/embedding"):
            assert (tag, 18) in values, tag
        assert ("valid/loss", 10) in values and ("test/bleu", 20) in values

        # The second checkpoint is lost: the steps after the first checkpoint are trained and recorded again.
        with open(f"{run}/checkpoints/step-00000020/model.safetensors", "r+b") as file:
            file.truncate(100)
        first = open(f"{run}/tensorboard/{files[0]}", "rb").read()
        call("resume", run, "train.steps=24")
        values, files = check_equal(run)
        assert len(files) == 2 and ("train/loss", 24) in values
        assert open(f"{run}/tensorboard/{files[0]}", "rb").read() == first, "an earlier file was changed"

        # train.tensorboard=false: no event file is added, and replacing the run removes its event files.
        call("resume", run, "train.steps=26", "train.tensorboard=false")
        assert len(os.listdir(f"{run}/tensorboard")) == 2
        protoc(run, files)
        call("train", "tiny.yaml", "--overwrite", "train.tensorboard=false")
        assert not os.path.exists(f"{run}/tensorboard")
        # The gradient of the second step is not finite.
        call("train", "tiny.yaml", "--overwrite", "optim.lr=1e30", "optim.schedule.name=constant",
             "optim.schedule.warmup=0", "train.steps=3", "train.log_every=2", "train.validate_every=9",
             "train.on_nonfinite=skip", status=5)
        skipped, _ = check_equal(run)
        assert skipped["train/gradient_norm", 2] is None
    print(f"{len(values)} values equal those of metrics.jsonl")


if __name__ == "__main__":
    main()
