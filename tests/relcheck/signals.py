"""Signals to a run, and several processes on one folder.

How soon a run ends is measured by its work after the signal: it finishes the current step, starts no further step, and
abandons a validation. Only the long form limits the time.
"""
import json
import shutil
import signal
import time

import one_winner
from harness import check_seconds, note
from interrupt import (ENDLESS, finish, let_run, linked_step, names_in, newest_record, outcome, resume_run,
                       shell_status, stop, stop_watching, status_line, wait_for_link, wait_for_step, wait_until)

# Checkpoints of 60 MB, steps of a few tenths of a second.
LARGE = ("model.d_model=256", "model.d_ff=1024", "model.layers=3", "train.batch_tokens=1500",
         "train.validate_every=5", "train.save_every=5", "train.steps=12")


def slow(times):
    """Overrides for steps that take a second or more; `times` multiplies their work."""
    return ("model.d_model=256", "model.d_ff=1024", "model.layers=3", "threads=1", "train.validate_every=100",
            "train.save_every=100", "train.steps=4", f"train.batch_tokens={5000 * times}",
            f"train.shards={3 * times}", f"data.synthetic.train={500 * times}")


def moments(check, ground):
    """Sends SIGINT and SIGTERM at random moments: runs end within a step with the right status and can be resumed."""
    wanted = 60 if ground.long else 6
    began = time.monotonic()
    reference = ground.train("synthetic", "reference", *LARGE)
    run_seconds = time.monotonic() - began
    max_seconds, max_steps, done, chains, equal, bad = 0.0, 0, 0, 0, 0, []
    while done < wanted and chains < 10 * wanted:
        run = ground.folder("signalled")
        for _ in range(8):
            number = (signal.SIGINT, signal.SIGTERM)[done % 2]
            process = resume_run(ground, "synthetic", run, *LARGE)
            if not let_run(process, ground.random.uniform(0.01, 0.4) * run_seconds):
                break
            status, seconds, before, after = stop_watching(process, number, lambda path=run: newest_record(path))
            done += 1
            max_seconds, max_steps = max(max_seconds, seconds), max(max_steps, after - before)
            if status != 128 + number and not (status == 0 and (run / "last").exists()):
                bad.append(status)
        status, stderr = finish(ground, "synthetic", run, *LARGE)
        if status != 0:
            note(status_line(status, stderr))
        chains += 1
        equal += status == 0 and outcome(run) == outcome(reference)
    check(f"{done} SIGINT and SIGTERM: wrong exit statuses", bad or 0, 0, not bad and done >= wanted)
    check("SIGINT, SIGTERM: maximum steps after the signal", max_steps, "<= 1", max_steps <= 1)
    check_seconds(check, ground, "SIGINT, SIGTERM: maximum time to exit", max_seconds, 5)
    check("SIGINT, SIGTERM: results equal after resume", f"{equal} of {chains}", "all", equal == chains)


def saved_at_the_step(check, ground):
    """Checks that a stop saves the last recorded step, so that no step is repeated."""
    lost = rounds = 0
    for step in (1, 7, 13, 22, 31) if ground.long else (1, 13):
        for number in (signal.SIGINT, signal.SIGTERM):
            run = ground.folder("signalled")
            process = resume_run(ground, "synthetic", run, *ENDLESS)
            if not wait_for_step(process, run, step):
                raise RuntimeError(f"the run ended before step {step}")
            status, _ = stop(process, number)
            rounds += 1
            lost += newest_record(run) != linked_step(run) or status != 128 + number
    check(f"SIGINT, SIGTERM: steps lost in {rounds} stops", lost, 0, not lost)


def slow_run(ground, times):
    """Starts a slow run and waits until it is in its second step."""
    run = ground.folder("slow")
    process = resume_run(ground, "synthetic", run, *slow(times))
    if not wait_for_step(process, run, 1):
        raise RuntimeError("slow: the run ended before its first step")
    time.sleep(0.1)
    return run, process


def ended_by_the_second(ground, first, second):
    """Returns whether a second signal ends a run before the end of its current step, the exit status, and the seconds
    until the exit. If a step is too short, or two signals arrive as one on a busy machine, the function repeats the
    run with longer steps and a longer pause."""
    for times in (1, 2, 4, 8, 16, 32):
        run, process = slow_run(ground, times)
        process.send_signal(first)
        time.sleep(0.2 * times ** 0.5)
        status, seconds = stop(process, second)
        if not linked_step(run):
            return True, status, seconds
    return False, status, seconds


def second_signal(check, ground):
    """Checks that after one signal a run finishes a slow step, and that a second signal ends it at once."""
    pairs = ((signal.SIGTERM, signal.SIGTERM), (signal.SIGINT, signal.SIGINT), (signal.SIGTERM, signal.SIGINT))
    run, process = slow_run(ground, 1)
    status, one, before, after = stop_watching(process, signal.SIGTERM, lambda: newest_record(run))
    saved = linked_step(run) == after
    check("one signal, slow step: steps after the signal", f"{after - before}, {'' if saved else 'not '}saved",
          "<= 1, saved", after - before <= 1 and saved and status == 143)
    check_seconds(check, ground, "one signal, slow step: time to exit", one, 5)
    ended = [ended_by_the_second(ground, *pair) for pair in pairs]
    at_once = sum(unsaved for unsaved, *_ in ended)
    check("second signal: does not wait for the step", f"{at_once} of {len(pairs)}", "all", at_once == len(pairs))
    check_seconds(check, ground, "second signal: time to exit", max(seconds for *_, seconds in ended), 0.5)
    bad = [status for (_, status, _), (_, second) in zip(ended, pairs) if status != 128 + second]
    check("second signal: wrong exit statuses", bad or 0, 0, not bad)


def validations(run):
    """The number of completed validations."""
    return sum(json.loads(line)["kind"] == "valid" for line in (run / "metrics.jsonl").read_text().splitlines(True)
               if line.endswith("\n"))


def during_validation(check, ground):
    """Checks that a stop does not wait for a long validation, and that resume repeats an abandoned one."""
    for sentences in (4000, 16_000, 64_000):  # repeated with more sentences if the validation ended before the signal
        run = ground.folder("signalled")
        process = resume_run(ground, "synthetic", run, *LARGE, "train.validate_every=1", "threads=1",
                        f"data.synthetic.valid={sentences}")
        if not wait_for_step(process, run, 1):
            raise RuntimeError("the run ended before its first step")
        time.sleep(0.2)
        status, seconds, before, after = stop_watching(process, signal.SIGTERM, lambda path=run: validations(path))
        if not before:
            break
    check("SIGTERM in a long validation: validation completed", "yes" if after else "no", "no",
          not after and status == 143)
    check_seconds(check, ground, "SIGTERM in a long validation: time to exit", seconds, 5)
    small = [*LARGE, "train.validate_every=1", "train.steps=2", "threads=1", "data.synthetic.valid=300"]
    reference = ground.train("synthetic", "reference", *small)
    run = ground.folder("signalled")
    process = resume_run(ground, "synthetic", run, *small)
    if wait_for_step(process, run, 1):
        stop(process, signal.SIGTERM)
    status, stderr = finish(ground, "synthetic", run)
    same = status == 0 and outcome(run) == outcome(reference)
    if not same:
        note(status_line(status, stderr))
    check("SIGTERM in a validation: result after resume", "equal" if same else "differs", "equal", same)


def checkpoints_on_request(check, ground):
    """Sends SIGUSR1 at steps without a due checkpoint: each signal adds a checkpoint, and the result is the same."""
    overrides = ("train.save_every=100000", "train.validate_every=100000", "train.keep=100")
    wanted = 20 if ground.long else 5
    run = ground.folder("asked")
    process = resume_run(ground, "synthetic", run, *ENDLESS, "train.keep=100")
    steps = set()
    for _ in range(wanted):
        before = linked_step(run)
        if not wait_for_step(process, run, before + 5):
            break
        process.send_signal(signal.SIGUSR1)
        if wait_until(process, lambda old=before: linked_step(run) != old):
            steps.add(linked_step(run))
    status, _ = stop(process, signal.SIGTERM)
    kept = {int(name[5:]) for name in names_in(run / "checkpoints") if name.startswith("step-")}
    check("SIGUSR1: checkpoints made", len(steps), wanted, len(steps) == wanted and steps <= kept and status == 143)
    overrides = (*overrides, f"train.steps={linked_step(run) + 20}")
    reference = ground.train("synthetic", "reference", *overrides)
    status, stderr = finish(ground, "synthetic", run, *overrides)
    same = status == 0 and outcome(run) == outcome(reference)
    if not same:
        note(status_line(status, stderr))
    check("SIGUSR1: result after resume", "equal" if same else f"differs, exit {status}", "equal", same)


def request_at_other_times(check, ground):
    """Checks that SIGUSR1 at the start and in the last evaluation does not end the run."""
    overrides = ("model.d_model=256", "model.d_ff=1024", "model.layers=2", "train.steps=2",
                 "data.synthetic.test=300")
    ends, rounds = {"at the start": [], "in the last evaluation": []}, 30 if ground.long else 4
    for i in range(rounds):
        run = ground.folder("asked")
        process = resume_run(ground, "synthetic", run, *overrides)
        if i % 2:
            ready = wait_for_link(process, run, 2) and let_run(process, 0.03)
        else:
            ready = wait_until(process, (run / "config.yaml").exists, 1e-4)
        if ready:
            process.send_signal(signal.SIGUSR1)
        ends[list(ends)[i % 2]].append(shell_status(process.wait()))
    for name, statuses in ends.items():
        wrong = [status for status in statuses if status]
        check(f"SIGUSR1 {name}: runs that it ended", f"{len(wrong)} of {len(statuses)}", 0, not wrong)


def measure(check, ground):
    """Runs all checks of this measure."""
    moments(check, ground)
    saved_at_the_step(check, ground)
    second_signal(check, ground)
    during_validation(check, ground)
    checkpoints_on_request(check, ground)
    request_at_other_times(check, ground)
    for name in ("reference", "signalled", "slow", "asked"):
        shutil.rmtree(ground.path / name, ignore_errors=True)
    one_winner.measure(check, ground)
