#!/usr/bin/env python3
"""test_schema.py HEED TEST_TRAIN: checks that the schema of `heed show --schema` agrees with the config reader.

The schema must accept every config that the reader accepts in its tests (including the shipped ones), and refuse
every config that the reader refuses, except for the errors in BEYOND. Requires Debian's python3-jsonschema.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

try:
    import jsonschema
except ImportError:
    print("python3-jsonschema is not installed")
    sys.exit(77)

# Errors that a JSON Schema cannot express, as patterns of the reader's messages.
BEYOND = {
    "compares two keys": r"is not a multiple of|is odd, but|is greater than|is less than|leave nothing|but \w+ ends at step"
                         r"|does not divide|needs an even width|must be greater than"
                         r"|as many files as target|hidden spans, but|to 65536 samples, got|shorter than a sample"
                         r"|three turns need|need an image of at least|needs frames of at least|divisible by \d+, but|blocks in all",
    "depends on several keys": r"missing: nothing to train on|missing, but|use one or the other|needs an end step"
                               r"|needs validation data|nothing ends the run|needs at least 1"
                               r"|needs data\.input|only for data\.input: text|name the tasks of the mixture|are the names of its tasks"
                               r"|a fraction cut from|but kind: swin needs|but front_end\.kind: conv needs|which mirroring exchanges|has no effect with kind: swin"
                               r"|only with train\.distill\.teacher|distillation cannot be combined",
    "concerns the items of a list": r"is not a synthetic task|is given twice",
    "requires the library of a plugin": r"is its library listed in plugins",
    "concerns the name of a folder": r"cannot be a folder's name",
}


def main():
    heed, tests = sys.argv[1:]
    schema = json.loads(subprocess.run([heed, "show", "--schema"], check=True, stdout=subprocess.PIPE).stdout)
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "cases")
        subprocess.run([tests, "--run_test=config,config_checks,config_errors,config_steps,config_yaml"], check=True,
                       stdout=subprocess.DEVNULL, env={**os.environ, "HEED_SCHEMA_CASES": file})
        cases = [json.loads(line) for line in open(file, encoding="utf-8")]

    failures, valid, shipped, refused, unseen = [], 0, 0, 0, 0
    beyond = dict.fromkeys(BEYOND, 0)
    for case in cases:
        verdict, what = case["verdict"], (case["text"], case["overrides"])
        if not case["readable"]:
            unseen += verdict != "accepted"
            continue
        errors = list(validator.iter_errors(case["tree"]))
        if verdict == "accepted" or verdict.startswith("shipped"):
            valid += verdict == "accepted"
            shipped += verdict != "accepted"
            if errors:
                failures.append((what, verdict, "the schema refuses it: " + errors[0].message[:300]))
        elif errors:
            refused += 1
        else:
            # Only the reader refuses the config: each of its messages must be an error that a schema cannot express.
            for line in verdict.splitlines():
                reason = next((name for name, pattern in BEYOND.items() if re.search(pattern, line)), None)
                if reason:
                    beyond[reason] += 1
                else:
                    failures.append((what, line, "the schema accepts it"))

    for failure in failures:
        print("FAILED: {!r}\n  reader: {}\n  {}".format(*failure))
    print(f"{shipped} shipped and {valid} other configs valid; {refused} broken ones refused, "
          f"{sum(beyond.values())} beyond a schema {beyond}, {unseen} not readable as YAML or a command line")
    if shipped < 12 or refused < 100:
        sys.exit("too few cases: expected at least 12 shipped and 100 refused configs from the tests")
    sys.exit(bool(failures))


main()
