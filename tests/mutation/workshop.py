"""Copies of the sources, their builds and their tests."""
import concurrent.futures
import contextlib
import functools
import hashlib
import json
import os
import pathlib
import queue
import re
import shutil
import signal
import subprocess
import threading
import time

# The tests, fast ones first, and the ninja target of each.
TESTS = {
    "data": "test_data",
    "optim_f64": "test_optim_f64",
    "autograd_golden": "test_autograd_golden",
    "command_parts": "test_command_parts",
    "autograd_f64": "test_autograd_f64",
    "autograd_f32": "test_autograd_f32",
    "kernels_f64": "test_kernels_f64",
    "kernels_f32": "test_kernels_f32",
    "nn_f64": "test_nn_f64",
    "train": "test_train",
    "training": "test_training",
    "torch_loads_weights": "write_torch_case",
    "commands": "heed",
    "commands_resume": "heed",
    "commands_belong": "heed",
    "commands_folders": "heed",
    "commands_tasks": "heed",
    "commands_sweep": "heed",
    "commands_data": "heed",
    "event_file": "heed",
    "track_metrics": "heed",
    "commands_export": "heed",
    "commands_received": "heed",
    "commands_help": "heed",
    "pages": "heed",
    "mpi_openmpi": "heed_mpi_delays_openmpi",  # which depends on heed
    "mpi_hosts": "heed",
    "course": "heed",
}
SKIPPED = 77  # exit status of a test with a missing dependency, such as PyTorch
FAILURE = re.compile(r'error: in "([^"]+)"|^FAILED: (.*)')
NO_SUCH_TEST = "Test setup error"


class DidNotBuild(Exception):
    pass


class Workshops:
    """Several copies of the sources in a folder, so that several faults are tried at once."""

    def __init__(self, root, folder, count):
        self.folder, self.shops, self.idle = folder, [], queue.SimpleQueue()
        for number in range(1, count + 1):
            shop = Workshop(root, folder / str(number), folder / "ccache")
            shop.copy_sources()
            shop.configure()
            self.shops.append(shop)
            self.idle.put(shop)

    @property
    def first(self):
        return self.shops[0]

    def each(self, work, items):
        """Yields work(shop, item) for each item, in their order; a shop works on one item at a time."""
        def in_idle_shop(item):
            shop = self.idle.get()
            try:
                return work(shop, item)
            finally:
                self.idle.put(shop)
        with concurrent.futures.ThreadPoolExecutor(len(self.shops)) as pool:
            yield from pool.map(in_idle_shop, items)

    def prepare(self, faults):
        """Builds all tests. Checks that every test and every suite named by a fault passes without a fault, and records
        their times, unless the record of an earlier run is still valid."""
        for shop in self.shops:  # one after the other: the second takes what the first has compiled from the cache
            shop.build(TESTS, jobs=len(self.shops))
        record = self.folder / "baseline.json"
        wanted = list(TESTS) + sorted({test for fault in faults for test in fault.tests} - set(TESTS))
        known = json.loads(record.read_text()) if record.exists() else {}
        if known.get("state") != self.first.state or not set(wanted) <= set(known["seconds"]):
            seconds = self.each(lambda shop, test: shop.seconds_of(test), wanted)
            known = {"state": self.first.state, "seconds": dict(zip(wanted, seconds))}
            record.write_text(json.dumps(known, indent=1))
        for shop in self.shops:
            shop.limits = known["seconds"]


class Workshop:
    def __init__(self, root, folder=None, cache=None):
        """Without a folder, faults cannot be planted; only misfit() works."""
        self.root = root
        self.source = folder / "source" if folder else root
        self.made = folder / "build" if folder else None
        self.environment = dict(os.environ, CCACHE_DIR=str(cache), CCACHE_BASEDIR=str(folder))
        self.tests = TESTS
        self.limits = {}

    # ---- sources -----------------------------------------------------------------------------

    def copy_sources(self):
        """Copies only changed files, so that the build is incremental. Also restores a file that still contains a
        fault."""
        total = hashlib.sha256()
        for name in source_files(self.root):
            path, target = self.root / name, self.source / name
            if path.is_symlink():
                target.parent.mkdir(parents=True, exist_ok=True)
                target.unlink(missing_ok=True)
                target.symlink_to(path.readlink())
                continue
            content = path.read_bytes()
            total.update(f"{name} {len(content)}\n".encode() + content)
            if not target.exists() or target.read_bytes() != content:
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, target)
        self.state = total.hexdigest()

    def misfit(self, fault):
        """The reason why a fault cannot be planted, or None."""
        path = self.source / fault.file
        count = path.read_text().count(fault.old) if path.exists() else 0
        if count != 1:
            return f"its old text must occur once in {fault.file}, but occurs {count} times"
        unknown = []
        for test in fault.tests:
            name, _, part = test.partition(":")
            if name not in TESTS or not set(re.findall(r"\w+\*?", part)) <= self.suites(name):
                unknown.append(test)
        return f"unknown tests: {', '.join(unknown)}" if unknown else None

    @functools.cache
    def suites(self, test):
        """The names of the suites and cases in the sources of a test, and patterns such as gradcheck_* that match them."""
        room = test.partition("_")[0]
        folder = {"kernels": "autograd", "training": "train/training"}.get(room, room)
        names = set()
        for path in (self.source / "tests" / folder).rglob("*.cpp"):
            if room != "train" or "training" not in path.parts:
                names.update(re.findall(r"BOOST_\w*TEST_(?:SUITE|CASE)\w*\((\w+)", path.read_text()))
        return names | {f"{name[:end]}*" for name in names for end in range(1, len(name))}

    @contextlib.contextmanager
    def planted(self, fault):
        if problem := self.misfit(fault):
            raise SystemExit(f"mutate: {fault.name}: {problem}")
        path = self.source / fault.file
        good = path.read_text()
        path.write_text(good.replace(fault.old, fault.new))
        try:
            yield
        finally:
            path.write_text(good)

    # ---- building ----------------------------------------------------------------------------

    def configure(self):
        command = ["cmake", "-G", "Ninja", "-S", self.source, "-B", self.made, "-DCMAKE_BUILD_TYPE=Release",
                   "-DCMAKE_CXX_FLAGS_RELEASE=-O1",  # fast to build, and fast enough to run
                   "-DHEED_WERROR=OFF"]              # a fault may leave code unused
        if shutil.which("ccache"):
            command.append("-DCMAKE_CXX_COMPILER_LAUNCHER=ccache")
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=self.environment)

    def build(self, tests, jobs=1):
        targets = sorted({TESTS[test.partition(":")[0]] for test in tests})
        done = subprocess.run(["ninja", "-C", self.made, "-j", str(jobs), *targets], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=self.environment)
        if done.returncode != 0:
            raise DidNotBuild(first_error(done.stdout) or done.stdout[-400:])

    def syntax_error(self, file):
        """The first compiler error in a file, or None. A header is compiled with the first source that includes it, or
        alone if no source includes it directly."""
        commands = json.loads((self.made / "compile_commands.json").read_text())
        inside = f"{self.source}/"
        sources = {entry["file"].removeprefix(inside): entry for entry in commands}
        found = sources.get(file)
        if found is None:
            including = f'#include "{file}"'
            users = [name for name in sources if including in (self.source / name).read_text()]
            found = dict(sources[users[0]] if users else sources["train/loop/step.cpp"])
            if not users:
                found["command"] = found["command"].replace(found["file"], f"-x c++ {inside}{file}")
        command = re.sub(r" -o \S+", "", found["command"]) + " -fsyntax-only"
        done = subprocess.run(command, shell=True, cwd=found["directory"], text=True, stderr=subprocess.PIPE)
        return first_error(done.stderr) if done.returncode else None

    # ---- testing -----------------------------------------------------------------------------

    def seconds_of(self, test):
        began = time.monotonic()
        if failure := self.run(test):
            raise SystemExit(f"mutate: {test} fails without a fault: {failure}")
        return time.monotonic() - began

    def run(self, test):
        """Runs a test until its first failure; returns the failure, or None."""
        name, _, part = test.partition(":")
        command = self.command_of(name) + ([f"--run_test={part}"] if part else [])
        limit = 60 + 10 * self.limits.get(test, 60)
        with subprocess.Popen(command, cwd=self.made, text=True, errors="replace", start_new_session=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL) as process:
            alarm = threading.Timer(limit, stop, [process])
            alarm.start()
            began = time.monotonic()
            try:
                failure, last = watch(process)
            finally:
                alarm.cancel()
        if failure:
            return f"{name}: {failure}"
        if time.monotonic() - began >= limit:
            return f"{name}: timed out after {limit:.0f} s"
        return None if process.returncode in (0, SKIPPED) else f"{name}: exit {process.returncode}, {last}"

    def command_of(self, name):
        shown = subprocess.run(["ctest", "--show-only=json-v1"], cwd=self.made, text=True, check=True,
                               stdout=subprocess.PIPE).stdout
        command = next(test["command"] for test in json.loads(shown)["tests"] if test["name"] == name)
        return command + (["--color_output=no"] if pathlib.Path(command[0]).name.startswith("test_") else [])


def watch(process):
    """Stops a test at its first reported failure. Returns that failure or None, and the last line that is not empty."""
    last = ""
    for line in process.stdout:
        if NO_SUCH_TEST in line:
            raise SystemExit(f"mutate: {' '.join(process.args)}: {line.strip()}")
        if failure := FAILURE.search(line):
            stop(process)
            return failure[1] or failure[2], last
        last = line.strip() or last
    return None, last


def stop(process):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def first_error(text):
    return next((line for line in text.splitlines() if "error:" in line), "")


def source_files(root):
    """All files that git tracks or does not ignore; without git, all files outside build and runs."""
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"], cwd=root,
                            text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if listed.returncode == 0:
        return sorted(name for name in listed.stdout.split("\0")
                      if name and ((root / name).is_file() or (root / name).is_symlink()))
    return sorted(str(path.relative_to(root)) for path in root.rglob("*")
                  if (path.is_file() or path.is_symlink()) and path.relative_to(root).parts[0] not in ("build", "runs"))
