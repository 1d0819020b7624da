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
    """Whether all files that state.json lists have the sums it gives them."""
    try:
        state = json.loads((folder / "state.json").read_text())
        return state["step"] == step_of(folder) and all(
            hashlib.sha256((folder / name).read_bytes()).hexdigest() == about["sha256"]
            for name, about in state["files"].items())
    except (OSError, ValueError, KeyError, TypeError):
        return False


def whole_steps(run):
    """The steps of the checkpoints whose sums are right."""
    return {step_of(folder) for folder in (run / "checkpoints").glob("step-*") if is_whole(folder)}


def reported(calls):
    """Call number → the step that is saved, as far as heed is concerned: `last` points there, and the folder was
    pushed to the disk, or should have been, for something else was done next."""
    found, links, waiting = {}, {}, 0
    for call in calls:
        if call.result < 0:
            lost = call.name == "fsync" and call.error != errno.EINTR  # that one is tried again
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
    """The steps that must be there after these calls: of `before` and those reported since, all that were not
    pruned. Pruning one begins by renaming it, and is right where two newer ones stay."""
    steps, reports = set(before), reported(calls)
    for call in calls:
        if call.name == "rename" and call.second.endswith(".old") and step_of(call.path) not in sorted(steps)[-2:]:
            steps.discard(step_of(call.path))
        if call.number in reports:
            steps.add(reports[call.number])
    return steps


def spoil(path):
    """Changes a byte in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
