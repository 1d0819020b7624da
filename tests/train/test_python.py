#!/usr/bin/env python3
"""test_python.py HEED FOLDER: compares the Python module in FOLDER with the program HEED.

What the module returns must equal what the program prints for the same run; weights must equal those that NumPy reads
from the file. Without the module or NumPy, the status is 77 (skipped).
"""
import contextlib
import gc
import io
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

HEED, FOLDER = sys.argv[1:3]
sys.path.insert(0, FOLDER)
try:
    import numpy as np
    import heed
except ImportError as missing:
    print(f"skipped: {missing} (Debian: apt-get install pybind11-dev python3-dev python3-numpy, then build heed again)")
    sys.exit(77)

PAIRS = """
name: pairs
threads: 2
data: {synthetic: {name: reverse, train: 400, valid: 20, test: 20, max_length: 6, symbols: 5}, lowercase: true}
tokenizer: {kind: char}
model: {d_model: 16, heads: 2, d_ff: 32, layers: {encoder: 1, decoder: 2}}
train: {steps: 30, batch_tokens: 256, validate_every: 10, save_every: 10, log_every: 3}
decode: {beam: 3, max_length: 12}
"""
TEXT = """
name: text
task: lm
data: {train: {text: text.txt}, valid_fraction: 0.1, test_fraction: 0.1}
tokenizer: {kind: char}
model: {d_model: 16, heads: 2, d_ff: 32, layers: 1, context: 16}
train: {steps: 20, batch_tokens: 256}
decode: {max_length: 20}
"""
CROSS = "decoder.layers.1.multihead_attn"


def program(*arguments, text="", status=0):
    done = subprocess.run([HEED, *map(str, arguments)], input=text, capture_output=True, text=True)
    assert done.returncode == status, f"heed {arguments}: status {done.returncode}\n{done.stderr}"
    return done.stdout if status == 0 else done.stderr


def tensors(file):
    """The tensors of a safetensors file, read by NumPy."""
    data = pathlib.Path(file).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header, values = json.loads(data[8:8 + length]), data[8 + length:]
    header.pop("__metadata__", None)
    return {name: np.frombuffer(values[slice(*t["data_offsets"])], "<f4").reshape(t["shape"])
            for name, t in header.items()}


def without_times(records):
    return [{key: value for key, value in record.items() if "second" not in key and "per_s" not in key}
            for record in records]


def when(condition, action):
    """A thread that acts as soon as the condition holds. It needs the GIL while heed computes."""
    def wait():
        while not condition():
            time.sleep(0.01)
        action()
    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)


def records_of(run):
    file = pathlib.Path(run, "metrics.jsonl")
    return file.read_text().splitlines() if file.exists() else []


class Module(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        pathlib.Path("text.yaml").write_text(TEXT)
        pathlib.Path("text.txt").write_text("".join(f"{i} times {i} is {i * i}\n" for i in range(400)))
        cls.messages = io.StringIO()
        with contextlib.redirect_stderr(cls.messages):
            cls.pairs = heed.train("pairs.yaml")
            cls.text = heed.train(pathlib.Path("text.yaml"), run="a text", seed=np.int64(5))
        cls.lines = ["ABC", "edcba", "a", "bb"]

    def test_training_is_that_of_the_program(self):
        self.assertEqual(self.pairs.folder, "runs/pairs")
        expected = [json.loads(line) for line in records_of("by_program")]
        self.assertEqual(without_times(self.pairs.metrics), without_times(expected))
        self.assertTrue(any(record["kind"] == "test" for record in self.pairs.metrics))
        self.assertIn("seed: 5\n", self.text.config)
        self.assertEqual(json.loads(pathlib.Path("a text/run.json").read_text())["command"],
                         ["heed.train", "text.yaml", "seed=5"])

    def test_messages_go_to_sys_stderr(self):
        self.assertIn("train step 30/30 (100%)", self.messages.getvalue())
        self.assertIn("the run is in runs/pairs\n", self.messages.getvalue())
        self.assertIn("heed: weights: best", self.messages.getvalue())

    def test_overrides_are_nested_or_dotted(self):
        run = heed.train("pairs.yaml", run="overridden", train={"steps": 4, "batch_tokens": np.int32(128)}, name="é 'x'",
                         **{"model.layers": 1})
        for line in ("steps: 4\n", "batch_tokens: 128\n", "beam: 3\n", "encoder: 1\n", "decoder: 1\n"):
            self.assertIn(line, run.config)
        self.assertIn("""name: "é 'x'"\n""", run.config.replace("\\'", "'"))

    def test_outputs_equal_those_of_the_program(self):
        given = "".join(line + "\n" for line in self.lines)
        self.assertEqual(self.pairs.generate(self.lines), program("generate", "runs/pairs", text=given).splitlines())
        best = [f"{i + 1}\t{score:.6f}\t{text}" for i, found in enumerate(self.pairs.nbest(self.lines, 2))
                for text, score in found]
        self.assertEqual(best, program("generate", "runs/pairs", "--nbest", 2, text=given).splitlines())

        def as_printed(text):
            return text if text.endswith("\n") else text + "\n"
        self.assertEqual(as_printed(self.text.continuation("12 t")), program("generate", "a text", "--prompt", "12 t"))
        sampled = heed.Run("a text", **{"decode.sample": True})
        self.assertEqual(as_printed(sampled.continuation("1", seed=9)), program(
            "generate", "a text", "--prompt", "1", "--sample", "--seed", 9))
        self.assertNotEqual(sampled.continuation("1", seed=9), sampled.continuation("1", seed=10))
        self.assertEqual(sampled.generate(["1"], seed=9), program(
            "generate", "a text", "--sample", "--seed", 9, text="1\n").splitlines())

    def test_scores_equal_those_of_the_program(self):
        targets = ["cba", "ABCDE", "", "bb"]
        pathlib.Path("source").write_text("".join(line + "\n" for line in self.lines))
        pathlib.Path("target").write_text("".join(line + "\n" for line in targets))
        for run, sources in ((self.pairs, self.lines), (self.text, None)):
            expected = json.loads(program("score", run.folder, "--target", "target", "--json",
                                          *(["--source", "source"] if sources else [])))
            found = run.score(sources, targets)
            self.assertEqual(found["log_prob"].tolist(), expected["log_prob"])
            self.assertEqual(found["tokens"].tolist(), expected["tokens"])
        for run, sources in ((self.pairs, ["a"]), (self.pairs, None), (self.text, ["a"])):
            with self.assertRaisesRegex(heed.Error, "expected .* sources and 2 targets") as caught:
                run.score(sources, ["a", "b"])
            self.assertEqual(caught.exception.status, 2)

    def test_ids_are_line_numbers_of_the_vocabulary(self):
        for target, name in ((False, "source"), (True, "target")):
            file = pathlib.Path(self.pairs.folder, f"{name}.vocab")
            pieces = (file if file.exists() else file.with_name("tokenizer.vocab")).read_text().splitlines()
            self.assertEqual([pieces[i] for i in self.pairs.encode("dAb", target)], ["d", "a", "b"])
        self.assertEqual(self.pairs.decode(self.pairs.encode("cab", target=True)), "cab")
        with self.assertRaisesRegex(heed.Error, "token id 1000 is outside the vocabulary"):
            self.pairs.decode([1000])

    def test_attention_equals_that_of_the_program(self):
        expected = json.loads(program("attention", "runs/pairs", "--input", "abcd", "--json"))
        found = self.pairs.attention("abcd")
        self.assertEqual(found.output, expected["output"])
        self.assertEqual(list(found.weights), [layer["name"] for layer in expected["layers"]])
        for layer in expected["layers"]:
            name = layer["name"]
            heads = np.array([head["weights"] for head in layer["heads"]], np.float32)
            np.testing.assert_array_equal(found.weights[name], heads)
            self.assertEqual(found.queries[name], expected[layer["queries"]])
            self.assertEqual(found.keys[name], expected[layer["keys"]])
            self.assertEqual(found.weights[name].shape, (2, len(found.queries[name]), len(found.keys[name])))
            np.testing.assert_allclose(found.weights[name].sum(axis=2), 1, atol=1e-5)
        program("attention", "runs/pairs", "--input", "abcd", "--target", "dcba", "--layer", CROSS, "--head", 1,
                "--view", "neurons", "--query", 2, "--output", "map.svg")
        one = self.pairs.attention("abcd", target="dcba", layer=CROSS, head=1)
        self.assertEqual(one.figure("neurons", query=2)._repr_svg_(), pathlib.Path("map.svg").read_text())
        one.figure("neurons", query=2).save("saved.svg")
        self.assertEqual(pathlib.Path("saved.svg").read_text(), pathlib.Path("map.svg").read_text())
        program("attention", "runs/pairs", "--input", "abcd", "--output", "page.html")
        page = pathlib.Path("page.html").read_text()
        self.assertEqual(found.page().html, page)
        self.assertEqual(found._repr_html_().count("<iframe"), 1)
        self.assertIn(page[:40].replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;"), found._repr_html_())
        with self.assertRaisesRegex(heed.Error, "a drawing contains one layer"):
            found.figure()

    def test_report_equals_that_of_the_program(self):
        program("report", "runs/pairs", "--output", "report.html")
        program("report", "runs/pairs", "--output", "curves.svg")
        def without_memory(page):  # that of the process
            return re.sub(r"[\d.]+ MB", "", page)
        self.assertEqual(without_memory(self.pairs.report().html), without_memory(pathlib.Path("report.html").read_text()))
        self.assertEqual(self.pairs.curves().svg, pathlib.Path("curves.svg").read_text())
        with self.assertRaisesRegex(heed.Error, "is a file of the run"):
            self.pairs.curves().save("runs/pairs/config.yaml")

    def test_weights_are_views_of_the_model(self):
        run = heed.Run("runs/pairs", weights="last")
        expected = tensors("runs/pairs/last/model.safetensors")
        self.assertEqual(set(run.weights), set(expected))
        for name, values in expected.items():
            np.testing.assert_array_equal(run.weights[name], values)
        name, values = next(iter(expected.items()))
        view = run.weights[name]
        self.assertTrue(np.shares_memory(view, run.weights[name]))
        self.assertEqual(view.dtype, np.float32)
        with self.assertRaises(ValueError):
            view[...] = 0
        with self.assertRaises(ValueError):
            view.setflags(write=True)
        del run
        gc.collect()
        heed.Run("a text")  # would reuse the memory
        np.testing.assert_array_equal(view, values)

    def test_errors_are_those_of_the_program(self):
        for status, call, arguments in (
                (2, lambda: heed.train("pairs.yaml", model={"d_modell": 8}), ("train", "pairs.yaml", "model.d_modell=8")),
                (2, lambda: heed.train("pairs.yaml"), ("train", "pairs.yaml")),
                (2, lambda: heed.Run("nothing"), ("generate", "nothing")),
                (3, lambda: heed.Run("damaged"), ("generate", "damaged")),
                (2, lambda: self.text.attention("a", target="b"), ("attention", "a text", "--input", "a", "--target", "b"))):
            if not os.path.exists("damaged"):
                program("quantize", "runs/pairs", "--run", "damaged")
                next(pathlib.Path("damaged/checkpoints").glob("*/state.json")).write_text("[]")
            with self.assertRaises(heed.Error) as caught:
                call()
            self.assertEqual(caught.exception.status, status)
            self.assertIn("heed: " + str(caught.exception), program(*arguments, status=status))
        self.assertTrue(issubclass(heed.Error, RuntimeError))
        with self.assertRaisesRegex(heed.Error, "n: expected at least 1, got 0"):
            self.pairs.nbest(["a"], 0)
        with self.assertRaises(TypeError):
            self.pairs.generate("a line")

    def test_gradients_are_checked(self):
        options = {"model.d_model": 8, "model.d_ff": 8, "model.layers": 1}
        report = heed.gradcheck("pairs.yaml", entries=1, **options)
        expected = json.loads(program("gradcheck", "pairs.yaml", "--entries", 1, "--json",
                                      *(f"{key}={value}" for key, value in options.items())))
        self.assertTrue(report.passed)
        self.assertEqual(report.parameters, expected["parameters"])
        self.assertIn(f"all {len(report.parameters)} parameters have the right gradient", repr(report))

    def test_ctrl_c_saves_the_run_which_can_be_resumed(self):
        stopped, constant = "stopped", {"optim.schedule": {"name": "constant", "warmup": 5}}
        caught = []
        before = signal.signal(signal.SIGUSR1, lambda *_: caught.append("usr1"))
        waiting = when(lambda: len(records_of(stopped)) > 2, interrupt)
        with self.assertRaises(KeyboardInterrupt):
            heed.train("pairs.yaml", run=stopped, train={"steps": 100000}, **constant)
        waiting.join()
        self.assertIn("stopped by SIGINT", pathlib.Path(stopped, "train.log").read_text())
        step = int(os.readlink(pathlib.Path(stopped, "last")).rpartition("-")[2])
        self.assertLess(step, 100000)
        os.kill(os.getpid(), signal.SIGUSR1)  # the handlers are those of before
        self.assertEqual(caught, ["usr1"])
        signal.signal(signal.SIGUSR1, before)
        resumed = heed.resume(stopped, train={"steps": step + 30})
        whole = heed.train("pairs.yaml", run="whole", train={"steps": step + 30}, **constant)
        for name, values in heed.Run("whole", weights="last").weights.items():
            np.testing.assert_array_equal(heed.Run(stopped, weights="last").weights[name], values)
        self.assertEqual(resumed.metrics[-1]["loss"], whole.metrics[-1]["loss"])

    def test_ctrl_c_ends_long_computations(self):
        def seconds(compute, count):
            begin = time.monotonic()
            compute(["abcde"] * count)
            return time.monotonic() - begin

        def interrupted(compute, count):
            begin = time.monotonic()
            when(lambda: time.monotonic() > begin + 0.5, interrupt)
            with self.assertRaises(KeyboardInterrupt):
                compute(["abcde"] * count)
            return time.monotonic() - begin
        for compute, part in (self.pairs.generate, 2000), (lambda lines: self.pairs.score(lines, lines), 20000):
            self.assertLess(interrupted(compute, 200000), 0.5 * 200000 / part * seconds(compute, part))
        self.assertLess(interrupted(lambda _: heed.gradcheck("pairs.yaml", entries=10**6), 0), 60)

    def test_two_trainings_at_once_are_refused(self):
        errors = []

        def second():
            try:
                heed.train("pairs.yaml", run="second")
            except heed.Error as error:
                errors.append(str(error))
            interrupt()
        when(lambda: len(records_of("first")) > 2, second)
        with self.assertRaises(KeyboardInterrupt):
            heed.train("pairs.yaml", run="first", train={"steps": 100000})
        self.assertEqual(errors, ["this process is already training a run"])

    def test_runs_are_used_by_several_threads(self):
        runs = [self.pairs, heed.Run("runs/pairs", weights="last", threads=1), self.text]
        expected = [run.generate(self.lines * 20) for run in runs]
        found = [None] * len(runs)

        def generate(i):
            found[i] = runs[i].generate(self.lines * 20)
        threads = [threading.Thread(target=generate, args=(i,)) for i in range(len(runs))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, expected)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as work:
        os.environ["XDG_STATE_HOME"] = work
        os.chdir(work)
        pathlib.Path("pairs.yaml").write_text(PAIRS)
        program("train", "pairs.yaml", "--run", "by_program")
        kernel = json.loads(pathlib.Path("by_program/run.json").read_text())["blas_kernel"]
        if kernel["chosen_by"] == "heed":  # OpenBLAS chooses when it is loaded; only the program restarts itself
            shutil.rmtree(work)
            os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | {"OPENBLAS_CORETYPE": kernel["name"]})
        unittest.main(argv=sys.argv[:1] + sys.argv[3:])
