#!/usr/bin/env python3
"""Checks the exercises of the course through `heed course`.

Usage: test_course.py HEED [--chapter N] [--long]
       test_course.py HEED --times [--record NAME]

For each chapter: the solution passes, also with a hidden key; the starter fails and names the function that is not
written; planted bugs are caught with their message (one of each chapter, with --long all); the student's test template
passes on the solution. Then: submissions that try to pass without being right do not. Prints a table of times. With --times, only
measures what it takes to grade a submission: each solution three times, one after another.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import resource
import shlex
import subprocess
import sys
import tempfile
import time

sys.path[:0] = [str(pathlib.Path(__file__).parent), str(pathlib.Path(__file__).parents[1] / "bench")]
import records  # noqa: E402
from hostile import APPEND, HOSTILE, SLOW  # noqa: E402

HERE = pathlib.Path(__file__).parent
failures = []


def expect(holds, what):
    if not holds:
        failures.append(what)
        print("FAILED:", what, flush=True)


class Course:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def run(self, *arguments, cwd=None):
        return subprocess.run([self.program, "course", *map(str, arguments)], cwd=cwd or self.folder, text=True,
                              capture_output=True, check=False, timeout=300)

    def check(self, chapter, *arguments):
        """The exit status of a check, and its results."""
        done = self.run("check", chapter, "--json", *arguments)
        try:
            return done.returncode, json.loads(done.stdout)
        except ValueError:
            expect(False, f"check {chapter} {arguments}: no JSON: {done.stdout}{done.stderr}")
            return done.returncode, {"score": 0, "tests": [], "extra_data": {}}


def failure_of(results):
    """The name and the sentence of the test that failed."""
    for test in results["tests"]:
        if test["status"] == "failed":
            return test["name"], test["output"]
    return "", ""


def chapter_job(course, chapter, solutions, starters, every):
    """Checks a solution and a starter; returns a row of the table of times."""
    number, folder = chapter["number"], chapter["folder"]
    solution = solutions / folder / "exercise.h"
    times = []
    for key in ("", "", "one", "two", "three") if every else ("one",):  # chapter 1 is also checked without a key: check_answers
        status, results = course.check(number, "--exercise", solution, *["--hidden", key] * bool(key))
        expect(status == 0 and results["score"] == len(results["tests"]),
               f"{folder}: the solution fails with the key \"{key}\": {failure_of(results)}")
        times.append(results["extra_data"])
    began = time.monotonic()
    status, starter = course.check(number, "--exercise", starters / folder / "exercise.h")
    name, sentence = failure_of(starter)
    expect(status == 1 and sentence.endswith("is not written yet"), f"{folder}: the starter: {name}: {sentence}")
    elapsed = time.monotonic() - began
    first, second = times[0], times[1] if every else {}
    return [folder, *(f"{t[key]:.2f}" if key in t else "-" for key in ("compile_seconds", "run_seconds") for t in (first, second)),
            f"{elapsed:.2f}"]


def bug_job(course, number, bug):
    """Checks one planted bug: the check must refuse it with the bug's message."""
    status, results = course.check(number, "--exercise", bug["file"])
    name, sentence = failure_of(results)
    expect(status == 1 and name and not name.startswith(("rules", "compile")),
           f"chapter {number}, bug {bug['name']}: not caught: {name}: {sentence}")
    expect(bug["message"] in sentence, f"chapter {number}, bug {bug['name']}: expected \"{bug['message']}\", got {name}: {sentence}")
    expect(1 <= bug["first"] <= bug["last"], f"chapter {number}, bug {bug['name']}: lines {bug['first']} to {bug['last']}")
    return [str(number), bug["name"], name.split(":")[0], sentence]


def hostile_job(course, solution, name, find, replace, text):
    """The solution with this change must not pass."""
    expect(find in solution, f"hostile submission {name}: the solution does not contain {find}")
    file = course.folder / f"{name}.h"
    file.write_text(solution.replace(find, replace, 1))
    status, results = course.check(1, "--exercise", file)
    sentence = failure_of(results)[1]
    expect(status == 1 and text in sentence, f"hostile submission {name}: status {status}: {sentence}")
    expect(results["score"] < len(results["tests"]), f"hostile submission {name}: full score")


def check_student(course, chapters):
    """The commands that a student uses, in a new folder."""
    done = course.run("start", "mine", cwd=course.folder)
    mine = course.folder / "mine"
    expect(done.returncode == 0 and (mine / "01-tape/exercise.h").exists(), f"start: {done.stderr}")
    expect("begin exercise" not in (mine / "01-tape/exercise.h").read_text(), "a starter contains a mark")
    listed = course.run("list", cwd=mine).stdout
    expect(listed.count("not started") == len(chapters), f"list: {listed}")
    done = course.run("check", "1", cwd=mine)
    expect(done.returncode == 1 and "FAILED  values: add" in done.stdout, f"check of a starter: {done.stdout}")
    expect("add is not written yet" in course.run("list", cwd=mine / "01-tape").stdout, "list after a check")
    (mine / "01-tape/exercise.h").write_text("mine")
    course.run("start", ".", cwd=mine)
    expect((mine / "01-tape/exercise.h").read_text() == "mine", "start overwrites an exercise")
    done = course.run("check", "1", cwd=mine)
    expect(done.returncode == 1 and "does not compile: exercise.h:1:1: error" in done.stdout, done.stdout)
    # Comments and strings may name what the chapter forbids, on each of their lines; code may not.
    quoted = '/* a Tensor\n   as heed::backward reads it,\n   a Tensor */\nconst char* const name = "Tensor \\" Tensor"; // Tensor\n'
    (mine / "01-tape/exercise.h").write_text(quoted + "mine")
    done = course.run("check", "1", cwd=mine)
    expect(done.returncode == 1 and "does not compile: exercise.h:5:1: error" in done.stdout, f"a comment: {done.stdout}")
    (mine / "01-tape/exercise.h").write_text(quoted + "inline Tensor twice(const Tensor& x);\n")
    done = course.run("check", "1", cwd=mine)
    expect("exercise.h:5: uses Tensor, which this chapter asks you to write" in done.stdout, f"a forbidden name: {done.stdout}")
    (mine / "01-tape/exercise.h").write_text('#include "autograd/ops/basic.h"\n')
    done = course.run("check", "1", cwd=mine)
    expect("exercise.h:1: includes" in done.stdout, f"a forbidden include: {done.stdout}")
    done = course.run("check", "77", cwd=mine)
    expect(done.returncode == 2 and "not a chapter" in done.stderr, f"check 77: {done.stderr}")
    done = course.run("check", "1", cwd="/")
    expect(done.returncode == 2 and "heed course start DIR" in done.stderr, f"outside of a folder: {done.stderr}")


def check_printed(course, mine, exercise, cases):
    """A failed check shows what the exercise printed; the number of cases is that of a check that passes."""
    before = exercise.read_text()
    prints = 'for (int i = 0; i < 30; ++i) std::cout << "line " << i << " \\33[1m" << std::endl;'
    expect(APPEND in before, f"the solution does not contain {APPEND}")
    exercise.write_text('#include <iostream>\n' + before.replace(APPEND, prints + ' std::printf("last"); heed::fail("mine");', 1))
    done = course.run("check", "1", cwd=mine)
    lines = done.stdout.splitlines()
    expect(done.returncode == 1 and "          mine" in lines, f"a check that prints: {done.stdout}")
    expect("  | last" in lines and "  | line 11 \\x1b[1m" in lines and not any("line 10" in line for line in lines),
           f"what an exercise prints: {done.stdout}")
    expect(f" of {cases} passed (" in lines[-1], f"the number of cases, expected {cases}: {done.stdout}")
    listed = json.loads(course.run("check", "1", "--json", cwd=mine).stdout)
    expect("line 11" not in json.dumps(listed), "the results contain what the exercise printed")
    exercise.write_text(before)


def check_answers(course, number):
    """A round of bugs: files without answers, and the check of answers."""
    mine = course.folder / "mine"
    done = course.run("bugs", number, "--student", "4711", cwd=mine)
    expect(done.returncode == 2 and "must pass first" in done.stderr and not (mine / "bugs").exists(),
           f"bugs of a chapter that has not passed: {done.stderr}")
    exercise = mine / "01-tape/exercise.h"
    exercise.write_text((course.folder / "01-tape/exercise.h").read_text())
    done = course.run("check", number, cwd=mine)
    cases = re.search(r"(\d+) of \1 passed", done.stdout)
    expect(done.returncode == 0 and cases, f"the solution in a student's folder: {done.stdout}")
    check_printed(course, mine, exercise, cases[1] if cases else "")
    done = course.run("bugs", number, "--student", "4711", cwd=mine)
    expect(done.returncode == 0, f"bugs: {done.stderr}")
    files = sorted((mine / f"bugs/{number}").iterdir())
    expect([f.name for f in files] == ["1.h", "2.h", "3.h"], f"bugs: {files}")
    every = json.loads(course.run("bugs", number, "--every", "--json").stdout)["bugs"]
    by_text = {pathlib.Path(course.folder / bug["file"]).read_text(): bug for bug in every}
    for i, file in enumerate(files, 1):
        bug = by_text[file.read_text()]
        right, line = f"{i}={bug['last']}:{bug['name']}", bug["last"] + 1
        other = next(b["name"] for b in every if b["name"] != bug["name"])
        for answer, status in ((right, 0), (right.replace("=", ".h=", 1), 0), (f"{i}={line}:{bug['name']}", 1), (f"{i}={bug['first']}:{other}", 1)):
            done = course.run("bugs", number, "--student", "4711", "--answer", answer, cwd=mine)
            expect(done.returncode == status, f"answer {answer}: {done.returncode}: {done.stdout}{done.stderr}")
    drawn = set()
    for student in range(8):
        course.run("bugs", number, "--student", student, "--solved", cwd=mine)
        drawn.add(tuple(f.read_text() for f in files))
    expect(len(drawn) > 1, "every student receives the same bugs")
    done = course.run("bugs", number, "--student", "4711", "--answer", "x", cwd=mine)
    expect(done.returncode == 2, f"a malformed answer: {done.stderr}")


def check_own_test(course):
    """The grade of a student's test: the template finds few bugs, a wrong test is refused."""
    mine = course.folder / "mine"
    done = course.run("test", "1", "--json", cwd=mine)
    graded = json.loads(done.stdout)
    expect(graded["tests"][0]["status"] == "passed" and graded["score"] < len(graded["tests"]) - 1, done.stdout)
    (mine / "01-tape/my_test.cpp").write_text('#include "exercise.h"\nbool my_test() { return false; }\n')
    done = course.run("test", "1", cwd=mine)
    expect(done.returncode == 1 and "fails on the solution" in done.stdout, f"a wrong test: {done.stdout}")
    strict = HERE / "strict_test.txt"
    (mine / "01-tape/my_test.cpp").write_text(strict.read_text())
    done = course.run("test", "1", cwd=mine)
    expect(done.returncode == 0, f"a strict test misses mistakes: {done.stdout}")


def compiler_with_header(folder):
    """Precompiles check.h, because reading it takes half the time of compiling an exercise, and writes a compiler that
    uses it. Returns the path of this compiler; None if the compiler is not GCC."""
    compiler = os.environ.get("CXX") or "c++"
    version = subprocess.run([compiler, "--version"], text=True, capture_output=True, check=False).stdout
    if "Free Software Foundation" not in version:
        return None
    header = folder / "header" / "all.h"
    header.parent.mkdir()
    header.write_text(f'#include "{HERE}/check.h"\n')
    # GCC uses the precompiled header only with the options of train/course/check.cpp.
    subprocess.run([compiler, "-std=c++20", "-O1", "-fPIC", "-w", "-fno-gnu-unique", "-DHEED_DOUBLE", "-I", HERE.parents[1], "-x",
                    "c++-header", header, "-o", f"{header}.gch"], check=True)
    wrapper = folder / "header" / "g++"
    wrapper.write_text(f'#!/bin/sh\nexec {shlex.quote(compiler)} -include {header} "$@"\n')
    wrapper.chmod(0o755)
    return str(wrapper)


def measure_times(course, chapters, record):
    """What grading a submission takes: the clock of its check, of the compiler and of the cases, and processor time."""
    rows = []
    for c in chapters:
        found = []
        for _ in range(3):
            began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
            status, results = course.check(c["number"], "--exercise", course.folder / c["folder"] / "exercise.h")
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            expect(status == 0, f"{c['folder']}: the solution fails: {failure_of(results)}")
            extra = results["extra_data"]
            found.append((time.monotonic() - began, extra["compile_seconds"], extra["run_seconds"],
                          after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
        median = [sorted(each)[1] for each in zip(*found)]
        rows.append([f"{c['number']}. {c['title']}", found[0][0], *median])
        print(rows[-1][0], *(f"{figure:.2f}" for figure in rows[-1][1:]), flush=True)
    heads = ("first check, s", "check, s", "compiler, s", "cases, s", "processor time, s")
    columns = [*records.texts("chapter"), *(records.column(head, ".2f") for head in heads)]
    if record:
        records.write(record, {"commands": ["tests/course/test_course.py HEED --times"],
                               "measured": records.machine() | {"kernel": None, "precision": "float64", "conditions": None},
                               "rounds": 3, "tables": {"submission": records.table(columns, rows)}})


def print_table(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("heed")
    parser.add_argument("--chapter", help="check only this chapter, and not the commands")
    parser.add_argument("--long", action="store_true", help="all planted bugs and more keys")
    parser.add_argument("--times", action="store_true", help="only the time that grading takes")
    parser.add_argument("--record", help="with --times: the name of the record")
    options = parser.parse_args()
    program = os.path.abspath(options.heed)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        folder = pathlib.Path(folder)
        course = Course(program, folder)
        course.run("start", ".", "--solutions")
        course.run("start", "starters")
        chapters = json.loads(course.run("list", "--json").stdout)["chapters"]
        if options.chapter:
            chapters = [c for c in chapters if str(c["number"]) == options.chapter]
        expect(chapters, f"no chapter {options.chapter}")
        if options.times:
            measure_times(course, chapters, options.record)
            return 1 if failures else 0
        os.environ["CXX"] = compiler_with_header(folder) or os.environ.get("CXX", "c++")
        jobs = [pool.submit(chapter_job, course, c, folder, folder / "starters", options.long) for c in chapters]
        bugs = []
        for c in chapters:
            expect(re.fullmatch(r"\d\d-[a-z]+", c["folder"]), c["folder"])
            done = course.run("bugs", c["number"], "--every", "--json")
            expect(done.returncode == 0, f"bugs of chapter {c['number']}: {done.stderr}")
            every = json.loads(done.stdout or '{"bugs": []}')["bugs"]
            expect(len(every) >= 6, f"chapter {c['number']} has {len(every)} planted bugs, expected at least 6")
            some = every if options.long or options.chapter else every[:1]
            bugs += [pool.submit(bug_job, course, c["number"], bug) for bug in some]
        if not options.chapter:
            tape = (folder / "01-tape/exercise.h").read_text()
            hostile = [pool.submit(hostile_job, course, tape, *case) for case in HOSTILE + (SLOW if options.long else [])]
            check_student(course, chapters)
            check_answers(course, 1)
            check_own_test(course)
            for job in hostile:
                job.result()
        print_table([["chapter", "compile, first", "second (s)", "run, first", "second (s)", "starter (s)"],
                     *(job.result() for job in jobs)])
        print()
        print_table([["chapter", "bug", "stage", "sentence"], *(job.result() for job in bugs)])
    print(f"\n{time.monotonic() - began:.0f} s, failures: {len(failures)}")
    for failure in failures:
        print(" ", failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
