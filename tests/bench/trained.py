"""Trains the models of an experiment, each once, and returns their evaluations."""
import concurrent.futures
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def heed(options, *arguments):
    done = subprocess.run([options.heed, *map(str, arguments)], cwd=ROOT, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"heed {' '.join(map(str, arguments))}: {done.stderr}")
    return done.stdout


class Run:
    """A config with overrides, and evaluations of the trained model, each with further overrides."""

    def __init__(self, name, config, keys, evaluations):
        self.name, self.config, self.keys, self.evaluations = name, config, keys, evaluations

    def results(self, options):
        folder = options.runs / options.experiment / self.name
        cache = folder / "evaluations.json"
        options.used.append(self)
        if not cache.exists():
            threads = [f"threads={1 if options.jobs > 1 else 'auto'}"]
            if (folder / "checkpoints").exists():
                heed(options, "resume", folder)
            else:
                heed(options, "train", self.config, "--run", folder, *self.keys, *threads)
            found = {name: json.loads(heed(options, "eval", folder, "--json", *keys, *threads))
                     for name, keys in self.evaluations.items()}
            lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
            minutes = max(line.get("seconds", 0) for line in lines) / 60
            for evaluation in found.values():
                evaluation["minutes"] = minutes  # of training
            cache.write_text(json.dumps(found))
        return json.loads(cache.read_text())


def results(options, runs):
    """Trains the selected runs, and returns their evaluations by run name."""
    selected = [run for run in runs if options.only in run.name]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        found = {}
        for run, result in zip(selected, pool.map(lambda run: run.results(options), selected)):
            found[run.name] = result
            print(run.name, json.dumps({k: brief(v) for k, v in result.items()}), file=sys.stderr, flush=True)
    return found


def brief(evaluation):
    return {k: v for k, v in evaluation.items() if isinstance(v, float)}


def by_seed(found, kind, evaluation, metric, seeds):
    """The values of the seeds that were trained; None if there are none."""
    names = [f"{kind}-{seed}" for seed in seeds]
    return [found[name][evaluation][metric] for name in names if name in found] or None
