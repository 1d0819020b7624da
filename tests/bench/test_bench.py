"""Checks that the benchmark scripts count and compare correctly. Exits with 77 (skipped) without PyTorch."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import torch
except ImportError:
    print("no PyTorch: skipped", file=sys.stderr)
    sys.exit(77)

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import torch_step  # noqa: E402
from workloads import BERT, LANGUAGE_MODEL, TRANSLATION, VIT, WORKLOADS, Workload  # noqa: E402

torch.set_num_threads(1)


class Flops(unittest.TestCase):
    def counted(self, workload):
        """The matrix FLOPs of one step that PyTorch's profiler counts."""
        torch_step.OPTIONS = type("Options", (), {"dropout": "none", "attention": "baddbmm", "adam": "foreach",
                                                  "compile": False, "precision": "float32"})
        step = torch_step.trainer(workload)
        with torch.profiler.profile(record_shapes=True, with_flops=True) as profile:
            step()
        products = ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm")
        return sum(e.flops for e in profile.key_averages() if e.key in products)

    def test_flop_formula_equals_the_count_of_the_profiler(self):
        for kind, more in ((TRANSLATION, {}), (TRANSLATION, {"relative": True}), (LANGUAGE_MODEL, {}), (BERT, {}),
                           (VIT, {"patch": 6})):
            workload = Workload("small", 24, 3, 40, 2, 19, 5, 7, kind, **more)
            self.assertEqual(self.counted(workload), workload.flops(), kind)


class Compare(unittest.TestCase):
    """Runs compare with a fake heed: a script that prints a given report."""

    def compare(self, report, code=0):
        with tempfile.TemporaryDirectory() as folder:
            heed = pathlib.Path(folder) / "heed"
            heed.write_text(f"#!/bin/sh\necho '{json.dumps(report)}'\nexit {code}\n")
            heed.chmod(0o755)
            return subprocess.run(
                [sys.executable, "-B", HERE / "compare", "nmt-toy", "--rounds", "2", "--threads", "1",
                 "--heed", heed, "--torch", sys.executable, "--json", "--", "--steps", "2", "--warmup", "1", "--dropout", "bytes"],
                capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})

    def report(self, gflop):
        return {"step_ms": 2.0, "tokens_per_s": 1.0, "gflop_per_step": gflop, "gflops": gflop / 2e-3,
                "gemm_gflops": 500.0, "gemm_share": 0.5, "peak_rss_mb": 10}

    def test_ratio_is_time_of_torch_over_time_of_heed(self):
        done = self.compare(self.report(WORKLOADS["nmt-toy"].flops() / 1e9))
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)["workloads"][0]
        self.assertEqual(len(result["ratios"]), 2)
        self.assertAlmostEqual(result["heed_step_ms"], 2.0)
        self.assertAlmostEqual(result["ratio"], result["torch_step_ms"] / 2.0)

    def test_different_flops_are_refused(self):
        done = self.compare(self.report(1.1 * WORKLOADS["nmt-toy"].flops() / 1e9))
        self.assertEqual(done.returncode, 1)
        self.assertIn("the workloads differ", done.stderr)

    def test_the_fastest_way_of_pytorch_is_compared(self):
        gflop = WORKLOADS["nmt-toy"].flops() / 1e9
        # A Python whose PyTorch takes 5 ms with SDPA, 9 ms otherwise, and prints its options.
        report = json.dumps({"step_ms": 1000, "gflop_per_step": gflop})
        torch = ('case "$*" in *sdpa*) ms=5;; *) ms=9;; esac\n'
                 f"""echo "$@" >>"$0.log"; echo '{report}' | sed "s/1000/$ms/\"""")
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            programs = {"heed": f"echo '{json.dumps(self.report(gflop))}'", "torch": torch}
            for name, text in programs.items():
                (folder / name).write_text("#!/bin/sh\n" + text + "\n")
                (folder / name).chmod(0o755)
            done = subprocess.run([sys.executable, "-B", HERE / "compare", "nmt-toy", "--rounds", "2", "--precision", "bf16", "--json",
                                   "--heed", folder / "heed", "--torch", folder / "torch"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            result = json.loads(done.stdout)["workloads"][0]
            self.assertEqual((result["way"], result["ratios"]), ("SDPA, fused", [2.5, 2.5]))
            calls = (folder / "torch.log").read_text().splitlines()
            self.assertEqual(len(calls), 6)  # four ways, two rounds
            self.assertTrue(all("--precision bf16" in call for call in calls))
            self.assertTrue(all(call.endswith("--adam fused --attention sdpa") for call in calls[4:]), calls)

    def test_failing_program_is_reported(self):
        done = self.compare({}, code=3)
        self.assertEqual(done.returncode, 1)
        self.assertIn("exit code 3", done.stderr)


if __name__ == "__main__":
    unittest.main()
