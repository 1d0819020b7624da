"""The fault shim (fault_shim.c): builds it, preloads it into heed, and reads its log."""
import dataclasses
import os
import pathlib
import re
import subprocess

O_ACCMODE, O_CREAT = os.O_ACCMODE, os.O_CREAT


@dataclasses.dataclass(frozen=True)
class Call:
    """One call on a file of the watched folder; paths are relative to that folder ("" is the folder itself)."""
    number: int
    name: str        # open, write, fsync, close, rename, exchange, mkdir, unlink, rmdir, symlink, ftruncate
    result: int
    error: int       # errno where result is -1
    fault: bool      # injected failure
    descriptor: int
    flags: int
    offset: int
    length: int
    path: str
    second: str      # the new name in a rename or exchange, or the text of a symlink
    at: int          # offset of a write's bytes in the data file

    def writes(self):
        """Whether this call opens a file so that it may be changed."""
        return self.name == "open" and (self.flags & O_ACCMODE != os.O_RDONLY or bool(self.flags & O_CREAT))

    def kind(self):
        """A key that is equal for calls that differ only in the step."""
        return self.name, self.flags, re.sub(r"\d{8}", "N", self.path), self.result < 0


class Shim:
    """The shim as a shared library, compiled into the scratch folder by this machine's compiler."""

    def __init__(self, ground):
        self.library = ground.path / "fault_shim.so"
        if not self.library.exists():
            source = pathlib.Path(__file__).with_name("fault_shim.c")
            subprocess.run([os.environ.get("CC", "cc"), "-O1", "-shared", "-fPIC", "-o", self.library, source,
                            "-ldl", "-lpthread"], check=True)

    def environment(self, folder, log, at=0, kind="", lasts=False, data=None):
        """The environment in which the calls on files below `folder` are logged to `log`, and call number `at` fails
        (0: none)."""
        log.unlink(missing_ok=True)
        values = {"LD_PRELOAD": self.library, "FAULT_FOLDER": folder, "FAULT_LOG": log, "FAULT_AT": at,
                  "FAULT_KIND": kind}
        if lasts:
            values["FAULT_LASTS"] = 1
        if data:
            data.unlink(missing_ok=True)
            values["FAULT_DATA"] = data
        return {**os.environ, **{name: str(value) for name, value in values.items()}}


    def signals(self, folder, step, number):
        """The environment in which the process sends itself a signal at this step of `folder`'s metrics or a later one."""
        return {**os.environ, "LD_PRELOAD": str(self.library), "FAULT_FOLDER": str(folder),
                "FAULT_SIGNAL": str(int(number)), "FAULT_STEP": str(step)}


def read_log(log, folder):
    """Returns the logged calls in order."""
    calls, at = [], 0
    for line in log.read_text().splitlines():
        number, name, result, error, fault, *numbers, path, second = line.split("\t")
        descriptor, flags, offset, length = map(int, numbers)
        inside = [os.path.relpath(p, folder) if p.startswith("/") else p for p in (path, second)]
        calls.append(Call(int(number), name, int(result), int(error), fault == "1", descriptor, flags, offset,
                          length, *("" if p == "." else p for p in inside), at))
        if name == "write" and int(result) > 0:
            at += int(result)
    return calls
