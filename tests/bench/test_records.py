"""Tests of records.py, and of the records that claims writes."""
import argparse
import copy
import importlib.machinery
import importlib.util
import json
import pathlib
import re
import stat
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))
import fingerprints  # noqa: E402
import records  # noqa: E402


def program(name):
    """A script without the suffix .py as a module."""
    loader = importlib.machinery.SourceFileLoader(name, str(HERE / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


MEASURED = {"commit": "0123456789" * 4, "date": "2026-01-31", "processor": "P", "cores": 3, "kernel": "K",
            "precision": "bf16", "conditions": None}
RECORD = {"commands": ["tests/bench/claims x"], "measured": MEASURED, "seeds": [1, 2, 3],
          "fingerprints": [{"config": "c.yaml", "keys": ["seed=1"], "kernel": "K", "weights": "ab" * 32}],
          "tables": {"t": {"columns": [{"head": "kind", "text": True}, {"head": "score", "format": ".1f"},
                                       {"head": "rate", "format": ".1%", "show": "mean"}],
                           "rows": [["low", [1, 2, 6], [0.25, 0.5, 0.75]], ["high", [7, 8, 9], None],
                                    ["middle", [5, 7, 9], {"value": 0.5, "n": 3}], ["one", [4], 0.5],
                                    ["two", [1, 2], 0.5], ["top", [9, 10, 11], 0.5]]}}}
PAGE = "# Page\n\n<!-- table x#t -->\n<!-- /table -->\n\n"


class Pages(unittest.TestCase):
    """A folder with one record and pages that show it."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "docs/results").mkdir(parents=True)
        for page in records.PAGES:
            (self.root / page).write_text("")
        self.page = self.root / "docs/MODELS.md"

    def check(self, prose="", record=RECORD, update=True):
        (self.root / "docs/results/x.json").write_text(json.dumps(record))
        self.page.write_text((PAGE if update else self.page.read_text()) + prose)
        results = records.Results(self.root)
        if update:
            results.update()
        results.check()
        return results.violations

    def test_update_writes_the_table_of_the_record(self):
        self.assertEqual(self.check(), [])
        text = self.page.read_text()
        self.assertIn("| kind | score | rate |\n|---|---:|---:|\n| low | 3.0 (1.0–6.0) | 50.0 % |\n"
                      "| high | 8.0 (7.0–9.0) | – |\n", text)
        self.assertIn("Measured: `tests/bench/claims x`; commit 0123456789; 2026-01-31; P; 3 cores; BLAS kernel K; bf16; "
                      "seeds 1, 2, 3.\n<!-- /table -->", text)

    def test_changed_figure_is_reported(self):
        self.check()
        self.page.write_text(self.page.read_text().replace("8.0 (7.0", "8.1 (7.0"))
        self.assertEqual(self.check(update=False), ["docs/MODELS.md:3: the table differs from its record, x.json: run "
                                                    "tests/bench/records.py --update"])

    def test_chapter_of_the_course_is_checked(self):
        chapter = self.root / "docs/course/01-x/en.md"
        chapter.parent.mkdir(parents=True)
        chapter.write_text("The high one is better.\n")
        self.assertEqual(self.check(), ['docs/course/01-x/en.md:1: "better" without a record: '
                                        "<!-- record NAME#KEY | COLUMN | ROW > ROW -->"])

    def test_unknown_origin_is_shown(self):
        record = copy.deepcopy(RECORD)
        record["measured"] |= {"commit": None, "kernel": None}
        record["seeds"] = None
        record["tables"]["t"]["exceptions"] = {"high": {"processor": "Q"}}
        self.assertEqual(self.check(record=record), [])
        self.assertIn("bf16. Row 2: Q. Not recorded: commit, BLAS kernel, seeds.\n", self.page.read_text())

    def test_table_without_a_record_is_reported(self):
        for cell, expected in (("12.5", 1), ("1,024 ms", 1), ("0.5 (0.4–0.6)", 1), ("`a`", 0), ("12 of 13 are", 0)):
            found = self.check(f"| a | b |\n|---|---|\n| x | {cell} |\n")
            self.assertEqual(found, ["docs/MODELS.md:16: a table of figures without a record"] * expected, cell)
        self.assertEqual(self.check("```\n| a | b |\n|---|---|\n| x | 12.5 |\n```\n"), [])

    def test_table_without_its_record_and_record_without_a_page_are_reported(self):
        found = self.check("<!-- table x#u -->\n<!-- /table -->\n")
        self.assertEqual(found, ["docs/MODELS.md:16: docs/results/ has no table x#u"])
        record = RECORD | {"tables": {"t": RECORD["tables"]["t"], "u": RECORD["tables"]["t"]}}
        self.assertEqual(self.check("", record), ["docs/results/x.json: no page names u"])
        self.assertEqual(self.check("Text. <!-- record x#u -->\n", record), [])

    def test_comparison_without_a_record_is_reported(self):
        for word in ("better", "Worse", "helps", "did not help", "hurts", "improved", "outperforms", "slower", "faster"):
            self.assertRegex("\n".join(self.check(f"A is {word} than B.\n")), r'MODELS.md:16: ".*" without a record')
        self.assertEqual(self.check("`better` is a name, and so is\n\n```\nworse\n```\n"), [])
        # The statement belongs to another paragraph.
        self.assertEqual(len(self.check("High. <!-- record x#t | score | high > low -->\n\nA is better.\n")), 1)
        self.assertEqual(len(self.check("- High. <!-- record x#t | score | high > low -->\n- A is better.\n")), 1)
        # A record alone does not state what is compared.
        self.assertEqual(len(self.check("A is better. <!-- record x#t -->\n")), 1)

    def test_comparison_must_follow_from_its_record(self):
        def found(statement, words="It is better."):
            return self.check(f"{words} <!-- record {statement} -->\n")
        self.assertEqual(found("x#t | score | high > low"), [])
        self.assertEqual(found("x#t | score | low < high"), [])
        self.assertIn("the figures are 3 and 8", found("x#t | score | low > high")[0])
        self.assertIn("no such table", found("x#u | score | high > low")[0])
        self.assertIn("0 rows are named best", found("x#t | score | best > low")[0])
        self.assertIn("4 rows are named o", found("x#t | score | o > high")[0])
        self.assertIn("0 columns are named BLEU", found("x#t | BLEU | high > low")[0])
        self.assertIn("no figure in column rate, row high", found("x#t | rate | high > low")[0])
        self.assertIn("expected NAME#KEY", found("x#t | score | high")[0])
        self.assertEqual(found("x#t | score > rate | low", "It is better (their ranges do not overlap)."), [])

    def test_overlap_and_few_seeds_must_be_mentioned(self):
        def found(statement, words):
            return self.check(f"{words} <!-- record {statement} -->\n")
        statement = "x#t | score | high > middle"
        self.assertIn("must mention that the ranges overlap", found(statement, "It is better.")[0])
        self.assertEqual(found(statement, "It is better, but the ranges overlap."), [])
        self.assertIn("must mention that the ranges overlap", found("x#t | score | top > high", "It is better.")[0])
        self.assertIn("must mention one seed", found("x#t | score | high > one", "It is better.")[0])
        self.assertEqual(found("x#t | score | high > one", "It is better (one seed)."), [])
        self.assertIn("must mention two seeds", found("x#t | score | high > two", "It is better.")[0])
        self.assertEqual(found("x#t | score | high > two", "With two seeds it is better."), [])
        times = {k: v for k, v in RECORD.items() if k not in ("seeds", "fingerprints")} | {"rounds": 3}
        self.assertEqual(self.check("It is faster. <!-- record x#t | score | one < high -->\n", times), [])

    def test_records_that_violate_the_schema_are_reported(self):
        def broken(change):
            record = copy.deepcopy(RECORD)
            change(record)
            return self.check(record=record)
        rows = lambda record: record["tables"]["t"]["rows"]
        for name, change in {
                "a missing key": lambda r: r.pop("fingerprints"),
                "an unknown key": lambda r: r.update(notes=""),
                "seeds and rounds": lambda r: r.update(rounds=3),
                "commands": lambda r: r.update(commands=[]),
                "a missing fact": lambda r: r["measured"].pop("kernel"),
                "a commit": lambda r: r["measured"].update(commit="yesterday"),
                "a date": lambda r: r["measured"].update(date="31 January"),
                "seeds": lambda r: r.update(seeds=["1"]),
                "a fingerprint": lambda r: r["fingerprints"][0].update(weights="ab"),
                "a format": lambda r: r["tables"]["t"]["columns"][1].pop("format"),
                "a statistic": lambda r: r["tables"]["t"]["columns"][1].update(show="mode"),
                "a short row": lambda r: rows(r)[0].pop(),
                "a formatted figure": lambda r: rows(r)[0].__setitem__(1, "3.0 (1.0–6.0)"),
                "no values": lambda r: rows(r)[0].__setitem__(1, []),
                "more values than seeds": lambda r: rows(r)[0].__setitem__(1, [1, 2, 3, 4]),
                "an infinite value": lambda r: rows(r)[0].__setitem__(1, [1, 2, float("inf")]),
                "a truth value": lambda r: rows(r)[0].__setitem__(1, True),
                "a number of nothing": lambda r: rows(r)[0].__setitem__(1, {"n": 3}),
                "a row of an exception": lambda r: r["tables"]["t"].update(exceptions={"best": {"kernel": "L"}}),
                "a fact of an exception": lambda r: r["tables"]["t"].update(exceptions={"low": {"seeds": "1"}})}.items():
            found = broken(change)
            self.assertTrue(found and found[0].startswith("docs/results/x.json: "), f"{name}: {found}")
        (self.root / "docs/results/y.json").write_text("{")
        self.assertIn("docs/results/y.json: not a record", self.check()[0])

    def test_written_record_is_read_again(self):
        path = str(self.root / "docs/results/z.json")
        records.write(path, RECORD)
        self.assertEqual(json.loads(pathlib.Path(path).read_text()), RECORD)
        with self.assertRaises(SystemExit):
            records.write(path, RECORD | {"seeds": []})


class Rendering(unittest.TestCase):
    def test_statistics(self):
        for show, expected in (("mean range", "4.0 (1.0–9.0)"), ("mean", "4.0"), ("median", "2.0"),
                               ("median range", "2.0 (1.0–9.0)"), ("each", "9.0, 1.0, 2.0")):
            self.assertEqual(records.shown([9, 1, 2], records.column("", ".1f", show)), expected)

    def test_other_figures(self):
        for cell, form, expected in ((None, ".1f", "–"), (7, ".1f", "7.0"), ([7], ".1f", "7.0"),
                                     (0.0123, ".1e", "1.2e-2"), (12345, ",.0f", "12,345"), (0.125, ".1%", "12.5 %"),
                                     ({"min": 1, "max": 2, "n": 3}, ".0f", "(1–2)"),
                                     ({"value": 1.5, "min": 1, "max": 2, "n": 3}, ".1f", "1.5 (1.0–2.0)")):
            self.assertEqual(records.shown(cell, records.column("", form)), expected)


class Claims(unittest.TestCase):
    """Runs every experiment of claims with a fake heed, and compares its tables with those of docs/results/."""

    EVALUATION = {metric: 0.5 for metric in ("exact_match", "token_accuracy", "accuracy", "f1", "bleu", "chrf", "loss",
                                             "perplexity")}
    PLACES = [(1, 1), (2, 2), (3, 4), (5, 8), (9, 16), (17, 32), (33, 64)]

    def heed(self, options, command, *arguments):
        if command in ("train", "prune"):
            run = arguments[arguments.index("--run") + 1]
            run.mkdir(parents=True)
            (run / "metrics.jsonl").write_text('{"kind": "train", "seconds": 90}\n')
            (run / "config.yaml").write_text("  specials: []\n")
        elif command == "sweep":
            self.sweep(*arguments[:3:2])
        elif command == "attention":
            objects = [o.split()[:2] for o in arguments[-1].removeprefix("drawing:").split(";")]
            weights = [[1 / 64] * 64] * 9
            layer = lambda n: {"name": f"decoder.layers.{n}.multihead_attn", "heads": [{"weights": weights}]}
            return json.dumps({"target": ["a", *objects[0], "above", "a", *objects[1], "</s>"],
                               "layers": [layer(0), layer(1)]})
        places = [{"from": a, "to": b, "loss": 1.5} for a, b in self.PLACES]
        return json.dumps(self.EVALUATION | {"loss_by_position": places})

    def sweep(self, config, folder):
        """Writes the runs of a sweep, whose last validation has exact match 0.5 and loss 1.5."""
        text = (ROOT / config).read_text().split("sweep:\n")[1]
        keys = [(k, v.split(", ")) for k, v in re.findall(r"^  ([\w.]+): \[(.*)\]", text, re.M)]
        seeds = re.search(r"seeds: (\d+)", text)
        points = [[]]
        for key, values in keys + ([("seed", map(str, range(1, int(seeds[1]) + 1)))] if seeds else []):
            values = list(values)
            points = [[*point, f"{key}={value}"] for point in points for value in values]
        for number, point in enumerate(points):
            (folder / str(number)).mkdir(parents=True)
            (folder / str(number) / "metrics.jsonl").write_text("".join(
                json.dumps({"kind": "valid", "exact_match": value, "loss": 1 + value}) + "\n" for value in (0.9, 0.5)))
        (folder / "sweep.json").write_text(json.dumps({"runs": [{"name": str(number), "overrides": point}
                                                                for number, point in enumerate(points)]}))

    def test_experiments_write_the_tables_of_their_records(self):
        claims = program("claims")
        claims.trained.heed = self.heed
        claims.beginning_of_multi30k = claims.write_pairs = lambda *arguments: []
        for name, experiment in claims.EXPERIMENTS.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                options = argparse.Namespace(experiment=name, runs=pathlib.Path(folder), seeds=range(1, 4), jobs=1,
                                             only="", heed="heed", used=[])
                with unittest.mock.patch("sys.stderr"):
                    found = experiment(options)
                known = json.loads((ROOT / f"docs/results/{name}.json").read_text())["tables"]
                self.assertEqual(set(found), set(known))
                for key, table in found.items():
                    self.assertEqual(list(records.table_problems(table, 3)), [])
                    self.assertEqual(table["columns"], known[key]["columns"], key)
                    rows, known_rows = (list(map(records.label(table), t["rows"])) for t in (table, known[key]))
                    self.assertEqual(rows, known_rows, key)
                    if name.startswith("sweep-"):
                        self.assertEqual({tuple(map(tuple, row[-2:])) for row in table["rows"]},
                                         {((0.5,) * len(table["rows"][0][-1]), (1.5,) * len(table["rows"][0][-1]))})


class Times(unittest.TestCase):
    """Runs the programs that measure times with a fake `heed bench`, whose steps take 7, 8, 9, … ms."""

    def record_of(self, name, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            heed, path = pathlib.Path(folder) / "heed", pathlib.Path(folder) / "record.json"
            heed.write_text(f"""#!/bin/sh
echo . >>{folder}/calls
echo '{{"step_ms": '$(( 6 + $(wc -l <{folder}/calls) ))', "gflop_per_step": 3, "products_ms": 4, "gemm_share": 0.5,
       "peak_rss_mb": 6, "params": 1000000, "blas": "OpenBLAS 0.3 Zen MAX_THREADS=2"}}'
""")
            heed.chmod(stat.S_IRWXU)
            command = [HERE / name, *arguments, "--heed", heed, "--record", path]
            with heed.open("a") as file:  # fails once at the second and once at the third measurement
                file.write(f"""calls=$(wc -l <{folder}/calls)
test $calls -ne 2 -a $calls -ne 3 -o -e {folder}/stopped$calls || {{
  touch {folder}/stopped$calls
  sed -i '$ d' {folder}/calls
  exit 1
}}
""")
            path.with_suffix(".partial").write_text('{"command": "another"}\n{"step_ms": 1}\n')
            self.assertEqual([subprocess.run(command, capture_output=True).returncode == 0 for _ in range(3)],
                             [False, False, True])
            self.assertFalse(path.with_suffix(".partial").exists())
            record = json.loads(path.read_text())
            self.assertEqual((record["measured"]["kernel"], list(records.problems(record))), ("Zen", []))
            self.assertEqual(record["commands"], [" ".join([f"tests/bench/{name}", *arguments])])
            return record

    def test_mechanisms_record_every_round(self):
        for experiment in ("lengths", "mixers", "swin", "kinds"):
            record = self.record_of("mechanisms", experiment, "--rounds", "2")
            known = json.loads((ROOT / f"docs/results/mechanisms-{experiment}.json").read_text())["tables"]
            table = record["tables"][experiment]
            rows, known_rows = (list(map(records.label(table), t["rows"])) for t in (table, known[experiment]))
            self.assertEqual((rows, record["rounds"]), (known_rows, 2))
            ratios = [8 / 7, 10 / 9]  # kinds alternates between the unchanged and the changed step
            self.assertEqual(table["rows"][0][1], ratios if experiment == "kinds" else [7, 8])

    def test_growth_and_cluster(self):
        growth = self.record_of("growth", "layers")
        self.assertEqual(growth["tables"]["layers"]["rows"][1], ["2", 8, 3, 4, 0.5, 6])
        cluster = self.record_of("cluster", "--gbit", "8", "--work", "1", "configs/bench/nmt-base.yaml",
                                 "configs/bench/gpt-tiny.yaml", "configs/bench/nmt-toy.yaml")
        row = cluster["tables"]["efficiency"]["rows"][0]
        self.assertEqual(row[:4], ["nmt-base", "8 Gbit/s", 1, 0.007])
        self.assertEqual(cluster["tables"]["efficiency"]["rows"][1][3], 0.008)
        # Two machines: 4 MB at 1 GB/s, 2 · 2 + 4 exchanges of 0.05 ms, 16 MB of copies at 8 GB/s.
        self.assertAlmostEqual(row[4], 7 / (7 + 4 + 0.4 + 2))

    def test_compare_computes_ratios_by_round(self):
        compare = program("compare")
        reports = lambda *times: [{"step_ms": time, "gflops": 2, "gemm_share": 0.5, "peak_rss_mb": 6} for time in times]
        table = compare.table({"nmt-toy": (reports(1, 2, 4), reports(6, 2, 8))}, {"nmt-toy": "eager"})
        self.assertEqual(records.rendered(table)[2],
                         "| nmt-toy | eager | 2.0 | 6.0 | 2.0 | 2.0 | 0.50 | 6 | 6 | 2.00 (1.00–6.00) |")

    def test_two_records_of_speed_are_compared_by_their_ranges(self):
        speed = program("record")
        report = lambda ms: {"step_ms": ms, "gflops": 2, "gemm_share": 0.9, "peak_rss_mb": 6, "first_step_ms": 9}
        tables = [speed.table({("nmt-toy", "float32"): [report(ms) for ms in a], ("nmt-toy", "bf16"): [report(ms) for ms in b]},
                              "train.precision")
                  for a, b in (((3, 2, 4), (5, 5, 6)), ((3, 3, 5), (8, 7, 7)))]
        with tempfile.TemporaryDirectory() as folder:
            names = [f"{folder}/{name}.json" for name in ("old", "new")]
            for name, table in zip(names, tables):
                records.write(name, {"commands": None, "measured": MEASURED, "rounds": 3, "tables": {"steps": table}})
            lines, slower = speed.comparison(*names)
            self.assertEqual([line.split() for line in lines[1:]], [["nmt-toy", "bf16", "5.0", "7.0", "1.40", "slower"],
                                                                    ["nmt-toy", "float32", "3.0", "3.0", "1.00"]])
            self.assertTrue(slower)
            self.assertFalse(speed.comparison(names[0], names[0])[1])
            records.write(names[1], {"commands": None, "measured": MEASURED | {"processor": "Q"}, "rounds": 3,
                                     "tables": {"steps": tables[1]}})
            with self.assertRaisesRegex(Exception, "measure both on one machine"):
                speed.comparison(*names)


FAKE = """#!/bin/sh
# A heed whose weights are those of its seed: train CONFIG --run RUN KEY …
echo "$@" | grep -q missing && { echo "heed: missing.txt: No such file" >&2; exit 3; }
mkdir -p "$4/checkpoints/step-00000020"
echo '{"blas_kernel": {"name": "KERNEL"}}' >"$4/run.json"
echo "$5" >"$4/checkpoints/part"
mv "$4/checkpoints/part" "$4/checkpoints/step-00000020/model.safetensors"
exec sleep 60
"""


class Stale(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "docs/results").mkdir(parents=True)
        (self.root / "heed").write_text(FAKE)
        (self.root / "heed").chmod(stat.S_IRWXU)
        self.options = argparse.Namespace(heed=str(self.root / "heed"), runs=self.root / "runs", only="", used=[])
        patch = unittest.mock.patch.object(fingerprints, "ROOT", self.root)
        patch.start()
        self.addCleanup(patch.stop)

    def stale(self, config, keys, **changed):
        kernel, weights = fingerprints.fingerprint(self.options, "c.yaml", ["seed=1"])
        entry = {"config": config, "keys": keys, "kernel": kernel, "weights": weights} | changed
        (self.root / "docs/results/x.json").write_text(json.dumps(RECORD | {"fingerprints": [entry]}))
        return self.lines()

    def lines(self):
        with unittest.mock.patch("builtins.print") as output:
            status = fingerprints.stale(self.options)
        return status, "".join(call.args[0] for call in output.call_args_list)

    def test_equal_bits_are_not_listed(self):
        self.assertEqual(self.stale("c.yaml", ["seed=1"]), (0, ""))

    def test_other_bits_are_listed(self):
        self.assertEqual(self.stale("c.yaml", ["seed=2", "a=b"]), (1, "x: other bits: c.yaml seed=2 a=b\n"))

    def test_another_kernel_and_missing_data_cannot_be_told(self):
        status, text = self.stale("c.yaml", ["seed=2"], kernel="OTHER")
        self.assertEqual(status, 0)
        self.assertIn("cannot tell: c.yaml seed=2: measured with BLAS kernel OTHER; here it is KERNEL", text)
        status, text = self.stale("missing.yaml", ["seed=1"])
        self.assertEqual((status, text), (0, "x: cannot tell: missing.yaml seed=1: heed: missing.txt: No such file\n"))

    def test_unrecorded_commit_or_fingerprints_need_a_run(self):
        for changed in ({"fingerprints": None}, {"measured": MEASURED | {"commit": None}, "fingerprints": []}):
            (self.root / "docs/results/x.json").write_text(json.dumps(RECORD | changed))
            self.assertEqual(self.lines(), (1, "x: commit or fingerprints are not recorded: it needs a new run\n"))

    def test_runs_share_the_fingerprint_of_their_first_seed(self):
        run = lambda name, *keys: argparse.Namespace(name=name, config="c.yaml", keys=list(keys))
        data = f"data={self.options.runs}/x/train.de"
        self.options.used = [run("b-2", "seed=2", data), run("b-1", "seed=1", data), run("a-1", "seed=1")]
        found = fingerprints.of_runs(self.options)
        self.assertEqual([entry["keys"] for entry in found], [["seed=1"], ["seed=1", "data=RUNS/x/train.de"]])

    def test_runs_of_two_kernels_are_refused(self):
        self.options.experiment = "x"
        about = {"revision": "ab" * 20, "started": "2026-01-31T10:00:00Z", "cpu": "P", "processors": 3}
        for name, kernel in (("a-1", "K"), ("a-2", "K")):
            run = self.options.runs / "x" / name
            run.mkdir(parents=True)
            (run / "run.json").write_text(json.dumps(about | {"blas_kernel": {"name": kernel}}))
            (run / "config.yaml").write_text("train:\n  precision: bf16\ndecode:\n  precision: float32\n")
            self.options.used.append(argparse.Namespace(name=name))
        self.assertEqual(fingerprints.measured(self.options), MEASURED | {"commit": "ab" * 20})
        (run / "run.json").write_text(json.dumps(about | {"blas_kernel": {"name": "L"}}))
        with self.assertRaisesRegex(SystemExit, "the runs differ in kernel: a-1: K; a-2: L"):
            fingerprints.measured(self.options)


if __name__ == "__main__":
    unittest.main()
