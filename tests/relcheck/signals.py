"""What a signal does to a run; and two runs on one folder."""
import shutil
import signal
import time

import one_winner
from harness import note
from interrupt import (finish, go_on, let_run, linked_step, names_in, newest_record, outcome, shell_status,
                       stop, told, wait_for_link, wait_for_step, wait_until)

# Checkpoints of 60 MB, and steps of some tenths of a second.
LARGE = ("model.d_model=256", "model.d_ff=1024", "model.layers=3", "train.batch_tokens=1500",
         "train.validate_every=5", "train.save_every=5", "train.steps=12")
# Steps of a second and more.
SLOW = ("model.d_model=256", "model.d_ff=1024", "model.layers=3", "train.batch_tokens=5000", "threads=1",
        "train.validate_every=100", "train.save_every=100", "train.steps=4")


def moments(check, ground):
    """SIGINT and SIGTERM at random moments of a chain of runs: all of them end in time and in order."""
    wanted = 60 if ground.long else 10
    whole = ground.train("synthetic", "whole", *LARGE)
    longest, done, chains, equal, bad = 0.0, 0, 0, 0, []
    while done < wanted and chains < wanted:
        run = ground.folder("signalled")
        for _ in range(8):
            number = (signal.SIGINT, signal.SIGTERM)[done % 2]
            process = go_on(ground, "synthetic", run, *LARGE)
            if not let_run(process, ground.random.uniform(0.05, 2)):
                break
            status, seconds = stop(process, number)
            done, longest = done + 1, max(longest, seconds)
            if status != 128 + number and not (status == 0 and (run / "last").exists()):
                bad.append(status)
        status, said = finish(ground, "synthetic", run, *LARGE)
        if status != 0:
            note(told(status, said))
        chains += 1
        equal += status == 0 and outcome(run) == outcome(whole)
    check(f"{done} SIGINT and SIGTERM: wrong exit statuses", bad or 0, 0, not bad and done >= wanted)
    check("SIGINT, SIGTERM: longest time to the end", f"{longest:.2f} s", "<= 5 s", longest <= 5)
    check("SIGINT, SIGTERM: ends equal after resume", f"{equal} of {chains}", "all", equal == chains)


def saved_at_the_step(check, ground):
    """After a stop the last recorded step is saved: nothing has to be done again."""
    lost = rounds = 0
    for step in (1, 7, 13, 22, 31):
        for number in (signal.SIGINT, signal.SIGTERM):
            run = ground.folder("signalled")
            process = go_on(ground, "synthetic", run)
            if not wait_for_step(process, run, step):
                continue
            status, _ = stop(process, number)
            if status == 0:  # it was over
                continue
            rounds += 1
            lost += newest_record(run) != linked_step(run) or status != 128 + number
    check(f"SIGINT, SIGTERM: steps lost in {rounds} stops", lost, 0, not lost and rounds >= 6)


def second_signal(check, ground):
    """One signal waits for a slow step; a second one does not."""
    pairs = ((signal.SIGTERM, None), (signal.SIGTERM, signal.SIGTERM), (signal.SIGINT, signal.SIGINT),
             (signal.SIGTERM, signal.SIGINT))
    one, longest, bad = 0.0, 0.0, []
    for first, second in pairs:
        run = ground.folder("slow")
        process = go_on(ground, "synthetic", run, *SLOW)
        if not wait_for_step(process, run, 1):
            raise RuntimeError("slow: no first step")
        time.sleep(0.1)
        if second is None:
            status, one = stop(process, first)
        else:
            process.send_signal(first)
            time.sleep(0.2)
            if process.poll() is not None:
                raise RuntimeError("slow: the steps are too fast to tell")
            status, seconds = stop(process, second)
            longest = max(longest, seconds)
        if status != 128 + (second or first):
            bad.append(status)
    check("one signal, slow step: time to the end", f"{one:.2f} s", "<= 5 s", one <= 5)
    check("second signal: time to the end", f"{longest:.2f} s", f"<= 0.5 s, < {one:.2f} / 2",
          longest <= 0.5 and longest < one / 2)
    check("second signal: wrong exit statuses", bad or 0, 0, not bad)


def during_validation(check, ground):
    """A validation of more than 5 s does not hold up a stop; a shorter one is made good by resume."""
    run = ground.folder("signalled")
    large = [*LARGE, "train.validate_every=1", "threads=1", "data.synthetic.valid=4000"]
    process = go_on(ground, "synthetic", run, *large)
    if not wait_for_step(process, run, 1):
        raise RuntimeError("no first step")
    time.sleep(0.2)
    status, seconds = stop(process, signal.SIGTERM)
    check("SIGTERM in a long validation: time to the end", f"{seconds:.2f} s", "<= 5 s",
          seconds <= 5 and status == 143)
    small = [*LARGE, "train.validate_every=1", "train.steps=2", "threads=1", "data.synthetic.valid=300"]
    whole = ground.train("synthetic", "whole", *small)
    run = ground.folder("signalled")
    process = go_on(ground, "synthetic", run, *small)
    if wait_for_step(process, run, 1):
        stop(process, signal.SIGTERM)
    status, said = finish(ground, "synthetic", run)
    same = status == 0 and outcome(run) == outcome(whole)
    if not same:
        note(told(status, said))
    check("SIGTERM in a validation: end after resume", "equal" if same else "differs", "equal", same)


def checkpoints_on_request(check, ground):
    """SIGUSR1 at steps where no checkpoint is due: one more each time, and the same end."""
    overrides = ("train.steps=150", "train.save_every=1000", "train.validate_every=1000", "train.keep=100")
    whole = ground.train("synthetic", "whole", *overrides)
    wanted = 20 if ground.long else 5
    run = ground.folder("asked")
    process = go_on(ground, "synthetic", run, *overrides)
    steps = set()
    for step in range(5, 145, 140 // wanted):
        if not wait_for_step(process, run, step):
            break
        before = linked_step(run)
        process.send_signal(signal.SIGUSR1)
        if wait_until(process, lambda old=before: linked_step(run) != old):
            steps.add(linked_step(run))
    status = shell_status(process.wait())
    kept = {int(name[5:]) for name in names_in(run / "checkpoints") if name.startswith("step-")}
    check("SIGUSR1: checkpoints made", len(steps), f">= {wanted}", len(steps) >= wanted and steps <= kept)
    same = status == 0 and outcome(run) == outcome(whole)
    check("SIGUSR1: goes on to the same end", "equal" if same else f"differs, exit {status}", "equal", same)


def request_at_other_times(check, ground):
    """SIGUSR1 from the moment the run exists to its very end: never what ends it."""
    overrides = ("model.d_model=256", "model.d_ff=1024", "model.layers=2", "train.steps=2",
                 "data.synthetic.test=300")
    ends, rounds = {"at the start": [], "in the last evaluation": []}, 30 if ground.long else 6
    for i in range(rounds):
        run = ground.folder("asked")
        process = go_on(ground, "synthetic", run, *overrides)
        if i % 2:
            ready = wait_for_link(process, run, 2) and let_run(process, 0.03)
        else:
            ready = wait_until(process, (run / "config.yaml").exists, 1e-4)
        if ready:
            process.send_signal(signal.SIGUSR1)
        ends[list(ends)[i % 2]].append(shell_status(process.wait()))
    for name, statuses in ends.items():
        wrong = [status for status in statuses if status]
        check(f"SIGUSR1 {name}: runs it ended", f"{len(wrong)} of {len(statuses)}", 0, not wrong)


def measure(check, ground):
    """All of the above."""
    moments(check, ground)
    saved_at_the_step(check, ground)
    second_signal(check, ground)
    during_validation(check, ground)
    checkpoints_on_request(check, ground)
    request_at_other_times(check, ground)
    for name in ("whole", "signalled", "slow", "asked"):
        shutil.rmtree(ground.path / name, ignore_errors=True)
    one_winner.measure(check, ground)
