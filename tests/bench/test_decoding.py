"""Checks `decoding` with a fake heed and fake clients: programs that print given reports."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
LINES = ["A man in an orange hat starring at something .", "A Boston Terrier is running on lush green grass ."]
# A heed that writes two lines and a speed of 2 s or, of a language model, of 1 s until the first token and 4 s in all.
HEED = """#!/usr/bin/python3
import json, sys
words = sys.argv[1:]
if words[0] != "generate":
    sys.exit({code})
model = "--chunk" in words
speed = dict(input_tokens=256, output_tokens=128, seconds=4, first_token_seconds=1) if model else dict(input_tokens=9, output_tokens=20, seconds=2)
open(words[words.index("--speed") + 1], "w").write(json.dumps(speed) + "\\n")
open(words[words.index("--output") + 1], "w").write({lines!r})
"""
PYTHON = """#!/usr/bin/python3
import json, sys
batches = [b for a, b in zip(sys.argv, sys.argv[1:]) if a == "--batch"]
seconds = [3 if b == "1024:tokens" else 5 for b in batches]
print(json.dumps(dict(seconds=seconds, output_tokens=18, outputs={outputs!r}, version="CTranslate2 0")))
"""
NODE = """#!/bin/sh
echo '{"input_tokens": %d, "output_tokens": 128, "seconds": 6, "first_token_seconds": 2, "version": "x"}'
"""


class Decoding(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "llama/node_modules").mkdir(parents=True)
        (self.folder / "decoding-gpt2").mkdir()
        (self.folder / "decoding-gpt2/int8.gguf").touch()
        (self.folder / "target").write_text("\n".join(LINES) + "\n")
        self.program("heed", HEED.format(code=0, lines="\n".join(LINES) + "\n"))
        self.program("venv/bin/python", PYTHON.format(outputs=[LINES[0], "A dog ."]))
        self.program("node", NODE % 256)

    def program(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def decoding(self, *words):
        return subprocess.run(
            [sys.executable, "-B", HERE / "decoding", "run", self.folder / "target", self.folder / "target", "--rounds", "2",
             "--heed", self.folder / "heed", "--clients", self.folder, *words],
            capture_output=True, text=True, env={"PATH": f"{self.folder}:/usr/bin:/bin"})

    def test_tables_of_translation_show_speeds_and_the_fastest_settings(self):
        record = self.folder / "record.json"
        done = self.decoding("--only", "greedy, float32, 1 thread", "--record", record)
        self.assertEqual(done.returncode, 0, done.stderr)
        tables = json.loads(record.read_text())["tables"]
        self.assertEqual(list(tables), ["translation", "outputs"])
        row = dict(zip((c["head"] for c in tables["translation"]["columns"]), tables["translation"]["rows"][0]))
        self.assertEqual(row["heed s"], [2, 2])
        self.assertEqual(row["CTranslate2 s"], [3, 3])
        self.assertEqual(row["heed sentences/s"], [1, 1])
        self.assertEqual(row["CTranslate2 tokens/s"], [6, 6])
        self.assertEqual(row["times CTranslate2"], [1.5, 1.5])
        name, settings, count, equal, ours, theirs = tables["outputs"]["rows"][0]
        self.assertEqual((name, settings), ("greedy, float32, 1 thread", "1 × 1 thread, batches of 1024 tokens"))
        self.assertEqual((count, equal), (2, 1))
        self.assertAlmostEqual(ours, 100)
        self.assertLess(theirs, 90)

    def test_rates_of_a_language_model_separate_prompt_and_continuation(self):
        done = self.decoding("--only", "GPT-2, int8, 2 threads")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("| GPT-2, int8, 2 threads | 256.0 (256.0–256.0) | 128.0 (128.0–128.0) | 2.00 (2.00–2.00) "
                      "| 42.3 (42.3–42.3) | 31.8 (31.8–31.8) | 1.33 (1.33–1.33) |", done.stdout)

    def test_different_numbers_of_tokens_are_refused(self):
        self.program("node", NODE % 257)
        done = self.decoding("--only", "GPT-2, int8, 2 threads")
        self.assertEqual(done.returncode, 1)
        self.assertIn("257 and 128 tokens, expected 256 and 128", done.stderr)

    def test_failing_program_is_reported(self):
        self.program("heed", HEED.format(code=3, lines=""))
        done = self.decoding("--only", "greedy, int8")
        self.assertEqual(done.returncode, 1)
        self.assertIn("exit code 3", done.stderr)

    def test_missing_clients_are_reported(self):
        (self.folder / "venv/bin/python").unlink()
        done = self.decoding()
        self.assertEqual(done.returncode, 1)
        self.assertIn("tests/clients/run ctranslate2 gguf installs the clients", done.stderr)

    def test_wrong_usage_is_refused(self):
        for words, message in ((["--rounds", "0"], "--rounds"), (["--only", "beam 7"], "no row"), (["--threads", "0"], "--threads"),
                               (["--threads", "x"], "--threads")):
            done = self.decoding(*words)
            self.assertEqual(done.returncode, 2)
            self.assertIn(message, done.stderr)


if __name__ == "__main__":
    unittest.main()
