"""Checkpoints on disk, read without heed."""
import errno
import hashlib
import json
import pathlib


def step_of(folder):
    """The step in the name of a checkpoint's folder; 0 for other names."""
    name = pathlib.PurePath(folder).name
    return int(name[5:]) if name.startswith("step-") and name[5:].isdigit() else 0


def is_whole(folder):
    """Whether state.json has the step in the folder's name, and all files that it lists match their checksums."""
    try:
        state = json.loads((folder / "state.json").read_text())
        return state["step"] == step_of(folder) and all(
            hashlib.sha256((folder / name).read_bytes()).hexdigest() == about["sha256"]
            for name, about in state["files"].items())
    except (OSError, ValueError, KeyError, TypeError):
        return False


def whole_steps(run):
    """The steps of the whole checkpoints of a run (is_whole)."""
    return {step_of(folder) for folder in (run / "checkpoints").glob("step-*") if is_whole(folder)}


def reported(calls):
    """Maps the number of a call to the step that counts as saved from this call on. A step is saved when `last` points
    to it and the run folder is synced; it also counts as saved if heed continues as if the folder were synced."""
    found, links, waiting = {}, {}, 0
    for call in calls:
        if call.result < 0:
            lost = call.name == "fsync" and call.error != errno.EINTR  # heed repeats the call after EINTR
            waiting = 0 if lost else waiting
        elif call.name == "symlink":
            links[call.path] = step_of(call.second)
        elif call.name == "rename" and call.second == "run/last":
            waiting = links[call.path]
        elif waiting and (call.name, call.path) != ("open", "run"):
            found[call.number] = waiting
            waiting = 0
    return found


def promised(calls, before=()):
    """The steps that must exist after these calls: those of `before` and those reported since, except pruned
    ones. Pruning begins with a rename and is allowed if two newer steps remain."""
    steps, reports = set(before), reported(calls)
    for call in calls:
        if call.name == "rename" and call.second.endswith(".old") and step_of(call.path) not in sorted(steps)[-2:]:
            steps.discard(step_of(call.path))
        if call.number in reports:
            steps.add(reports[call.number])
    return steps


def flip_byte(path):
    """Changes one bit of the byte in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
