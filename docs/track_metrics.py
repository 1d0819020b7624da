#!/usr/bin/env python3
"""Sends the metrics of a run to MLflow, Weights & Biases or Trackio.

    docs/track_metrics.py runs/dates --to mlflow
    docs/track_metrics.py runs/dates --to wandb --project translation --follow
    docs/track_metrics.py runs/dates --to trackio --dry-run

Reads RUN/config.yaml and RUN/metrics.jsonl, and changes no file of RUN. The tracker's package must be installed; each
call begins a new run of the tracker. A number "loss" in a record of kind "train" becomes the metric train/loss, and a
number "encoder.layers.0" in its "gradient_norms" becomes train.gradient_norms/encoder.layers.0, at the record's step.
Numbers that are not finite (null in the file) are skipped.
"""
import argparse
import fcntl
import importlib
import json
import os
import sys
import time


def figures(record, group):
    """The numbers of a record and of the objects in it, by name."""
    found = {}
    for name, value in record.items():
        if isinstance(value, dict):
            found.update(figures(value, f"{group}.{name}"))
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            found[f"{group}/{name}"] = value
    return found


def read_config(path):
    """The keys of a run's config.yaml, which has one key in each line: {"train.steps": 2000, …}."""
    keys, sections = {}, []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            name, colon, value = line.strip().partition(":")
            if not colon or name.startswith("#"):
                continue
            sections = sections[:(len(line) - len(line.lstrip())) // 2]
            value = value.strip()
            if not value:
                sections.append(name)
                continue
            try:
                value = json.loads(value)
            except ValueError:
                pass  # an unquoted string
            keys[".".join(sections + [name])] = value
    return keys


def is_running(run):
    """Whether a heed process works on the run: it then holds the lock on the file .lock."""
    try:
        with open(os.path.join(run, ".lock"), "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


def records(run, follow, seconds):
    """Yields the records of the run; with `follow`, also the records that heed writes until the run ends. A last line
    without a line ending is incomplete and not yielded yet."""
    path = os.path.join(run, "metrics.jsonl")
    begin, ends = 0, []  # the end offset of the last yielded record, and those of all yielded records
    while True:
        last = not follow or not is_running(run)  # tested before reading, so that no record is missed
        if os.path.exists(path):
            while os.path.getsize(path) < begin:  # heed resume has removed records, which it writes again
                ends.pop()
                begin = ends[-1] if ends else 0
            with open(path, "rb") as file:
                file.seek(begin)
                *lines, _ = file.read().split(b"\n")
            for line in lines:
                begin += len(line) + 1
                ends.append(begin)
                try:
                    record = json.loads(line)
                    yield record["kind"], record.get("step", 0), record
                except (ValueError, KeyError, TypeError):
                    sys.exit(f"{path}:{len(ends)}: not a record")
        if last:
            return
        time.sleep(seconds)


class DryRun:
    """Prints what would be sent to a tracker."""

    def __init__(self, project, name, config):
        print(f"project {project}, run {name}")
        for key, value in config.items():
            print(f"config {key} = {json.dumps(value, ensure_ascii=False)}")

    def log(self, values, step):
        for name, value in values.items():
            print(f"step {step}  {name} = {value!r}")

    def end(self):
        print("end")


class MLflow:
    """mlflow.org: parameters, then metrics by step. MLFLOW_TRACKING_URI names the destination."""

    def __init__(self, project, name, config):
        self.mlflow = package("mlflow")
        self.mlflow.set_experiment(project)
        self.mlflow.start_run(run_name=name)
        items = [(key, str(value)[:500]) for key, value in config.items()]
        for begin in range(0, len(items), 100):  # the maximum number of parameters of one call
            self.mlflow.log_params(dict(items[begin:begin + 100]))

    def log(self, values, step):
        self.mlflow.log_metrics(values, step=step)

    def end(self):
        self.mlflow.end_run()


class Wandb:
    """wandb.ai, and Trackio, which has the same interface."""

    def __init__(self, project, name, config, module="wandb"):
        self.module = package(module)
        self.run = self.module.init(project=project, name=name, config=config)

    def log(self, values, step):
        self.module.log(values, step=step)

    def end(self):
        self.module.finish()


class Trackio(Wandb):
    def __init__(self, project, name, config):
        super().__init__(project, name, config, "trackio")


TRACKERS = {"mlflow": MLflow, "wandb": Wandb, "trackio": Trackio}


def package(name):
    try:
        return importlib.import_module(name)
    except ImportError as error:
        sys.exit(f"{name} is not installed ({error}): pip install {name}, or look at --dry-run")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("run", metavar="RUN", help="run folder, such as runs/dates")
    parser.add_argument("--to", choices=TRACKERS, required=True, help="the tracker")
    parser.add_argument("--project", default="heed", help="project or experiment of the tracker (default: heed)")
    parser.add_argument("--name", help="name of the run in the tracker (default: the name of RUN)")
    parser.add_argument("--follow", action="store_true", help="continue until no heed process works on the run")
    parser.add_argument("--every", type=float, default=5, metavar="S", help="--follow: read every S seconds (default: 5)")
    parser.add_argument("--dry-run", action="store_true", help="print what would be sent; needs no tracker")
    options = parser.parse_args()
    try:
        config = read_config(os.path.join(options.run, "config.yaml"))
    except OSError as error:
        sys.exit(f"{options.run}: not a run ({error.strerror})")
    name = options.name or str(config.get("name", os.path.basename(os.path.normpath(options.run))))
    tracker = (DryRun if options.dry_run else TRACKERS[options.to])(options.project, name, config)
    try:
        for kind, step, record in records(options.run, options.follow, options.every):
            record.pop("step", None)
            if values := figures(record, kind):
                tracker.log(values, step)
    except KeyboardInterrupt:  # ends --follow
        pass
    tracker.end()


if __name__ == "__main__":
    main()
