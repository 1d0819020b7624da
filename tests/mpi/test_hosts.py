"""test_hosts.py HEED: a distributed run on two hosts, which are network namespaces with separate addresses, names and
run folders, connected by a pair of virtual Ethernet devices (veth); and a second run over a lossy link, which delays
packets and loses some. Needs root, ip, unshare and Open MPI; otherwise the test is skipped.

--rate MBIT limits the rate of each device (tc tbf). If arguments follow --, the script runs heed with them in the
current folder, instead of the test, and prints the output; --ms DELAY and --loss PERCENT then replace the veth pair
with a lossy link: two TUN devices, between which this script forwards the packets, because few kernels have netem.
"""
import argparse
import ctypes
import fcntl
import heapq
import os
import pathlib
import random
import select
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time

parser = argparse.ArgumentParser()
parser.add_argument("heed")
parser.add_argument("--rate", type=float, default=0, help="Mbit/s; 0: unlimited")
parser.add_argument("--ms", type=float, default=0, help="delay in each direction, in milliseconds")
parser.add_argument("--loss", type=float, default=0, help="per cent of packets lost in each direction")
words = sys.argv[1:]
at = words.index("--") if "--" in words else len(words)
options = parser.parse_args(words[:at])
options.command = words[at + 1:]  # arguments of a run of heed, which replaces the test
heed = os.path.abspath(options.heed)
if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "unshare", "mpirun.openmpi"))):
    print("skipped: needs root, ip, unshare and mpirun.openmpi")
    sys.exit(77)

home = os.getcwd()
work = pathlib.Path(tempfile.mkdtemp(prefix="heed-hosts-"))
shared = work / "shared"  # each host mounts a different folder at this path
hosts = [f"heedtest{i}" for i in range(2)]
address = ["10.213.7.1", "10.213.7.2"]


def run(*words, **how):
    return subprocess.run(words, check=True, capture_output=True, text=True, **how)


def on(host, *words):
    """The command line that runs a command on a host, with the network, name and folder of the host."""
    setup = f'hostname {host}; mount --bind {work / host} {shared}; cd {home if options.command else shared}; exec "$@"'
    return ["ip", "netns", "exec", host, "unshare", "--uts", "--mount", "sh", "-c", setup, "sh", *words]


class Line:
    """A lossy link: connects the hosts by two TUN devices and forwards packets between them with delays and losses."""

    def __init__(self, ms, loss):
        self.delay, self.loss = ms / 1000, loss / 100
        self.carried = self.lost = 0
        self.over = threading.Event()
        self.ends = [self.device(host, f"heedt{i}") for i, host in enumerate(hosts)]
        self.thread = threading.Thread(target=self.carry, daemon=True)
        self.thread.start()

    @staticmethod
    def device(host, name):
        """The descriptor of a new TUN device in the host's network. Each read or write transfers one packet."""
        libc, new_network = ctypes.CDLL(None, use_errno=True), 0x40000000
        before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        network = os.open(f"/run/netns/{host}", os.O_RDONLY)
        try:
            if libc.setns(network, new_network) != 0:
                raise OSError(ctypes.get_errno(), "setns")
            end = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
            set_interface, tun, no_header = 0x400454CA, 0x0001, 0x1000
            fcntl.ioctl(end, set_interface, struct.pack("16sH14x", name.encode(), tun | no_header))
        finally:
            libc.setns(before, new_network)
            os.close(before)
            os.close(network)
        return end

    def carry(self):
        chance, late = random.Random(1), []  # (time when it is due, number, destination, packet)
        while not self.over.is_set():
            wait = min(max(late[0][0] - time.monotonic(), 0), 0.1) if late else 0.1
            for end in select.select(self.ends, [], [], wait)[0]:
                packet = os.read(end, 1 << 16)
                self.carried += 1
                if chance.random() < self.loss:
                    self.lost += 1
                    continue
                destination = self.ends[1 - self.ends.index(end)]
                heapq.heappush(late, (time.monotonic() + self.delay, self.carried, destination, packet))
            while late and late[0][0] <= time.monotonic():
                _, _, end, packet = heapq.heappop(late)
                try:
                    os.write(end, packet)
                except OSError:  # the queue of the device is full: the packet is lost
                    self.lost += 1

    def close(self):
        self.over.set()
        self.thread.join()
        for end in self.ends:
            os.close(end)


line = None


def make_hosts(ms, loss):
    global line
    cable = "ip link add heedt0 netns {0} type veth peer name heedt1 netns {1}".format(*hosts).split()
    try:
        for host in hosts:
            run("ip", "netns", "add", host)
        if ms or loss:
            line = Line(ms, loss)
        else:
            run(*cable)
    except (subprocess.CalledProcessError, OSError) as error:
        print("skipped: this system cannot create the network:", getattr(error, "stderr", None) or error)
        return False
    shared.mkdir(exist_ok=True)
    for i, host in enumerate(hosts):
        (work / host).mkdir(exist_ok=True)
        names = pathlib.Path("/etc/netns", host)
        names.mkdir(parents=True, exist_ok=True)
        (names / "hosts").write_text("127.0.0.1 localhost\n" + "".join(f"{a} {h}\n" for a, h in zip(address, hosts)))
        run("ip", "-n", host, "addr", "add", address[i] + "/24", "dev", f"heedt{i}")
        run("ip", "-n", host, "link", "set", "lo", "up")
        run("ip", "-n", host, "link", "set", f"heedt{i}", "up")
        if options.rate:
            run("tc", "-n", host, "qdisc", "add", "dev", f"heedt{i}", "root", "tbf", "rate", f"{options.rate}mbit",
                "burst", "1mb", "latency", "100ms")
    return True


def remove_hosts():
    global line
    if line is not None:
        line.close()
        line = None
    for host in hosts:
        subprocess.run(["ip", "netns", "del", host], capture_output=True)
        shutil.rmtree(pathlib.Path("/etc/netns", host), ignore_errors=True)


def mpirun(ranks, *words):
    """Runs heed on both hosts. An agent replaces ssh: mpirun calls it with a host and a command line."""
    agent = work / "agent"
    agent.write_text(f"""#!/bin/sh
shift
exec {shlex.join(on(hosts[1], "sh", "-c"))} "$*"
""")
    agent.chmod(0o755)
    slots = (ranks + 1) // 2
    settings = ["--mca", "plm_rsh_agent", str(agent), "--mca", "btl_tcp_if_include", "10.213.7.0/24", "--mca",
                "oob_tcp_if_include", "10.213.7.0/24", "--mca", "btl", "self,vader,tcp"]
    command = ["mpirun.openmpi", *settings, "--host", ",".join(f"{h}:{slots}" for h in hosts), "--oversubscribe",
               "--bind-to", "none", "-n", str(ranks), heed, *words]
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return subprocess.run(on(hosts[0], *command), env=environment, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL)


config = """
task: seq2seq
data: {synthetic: {name: reverse, train: 400, valid: 40, test: 30, max_length: 8, symbols: 8}}
tokenizer: {kind: sentencepiece, vocab_size: 20}
model: {d_model: 24, heads: 4, d_ff: 48, layers: 2, dropout: 0.2}
optim: {lr: 0.004, schedule: {warmup: 10}}
train: {steps: 20, batch_tokens: 400, shards: 8, validate_every: 20, save_every: 10, log_every: 10}
decode: {beam: 2, max_length: 12}
"""


def check_equal(name, failures):
    """Checks that the run on the first host equals the run in one process."""
    for step in (10, 20):
        for file in ("model.safetensors", "training.safetensors"):
            path = f"checkpoints/step-{step:08}/{file}"
            if (work / "one" / path).read_bytes() != (work / hosts[0] / name / path).read_bytes():
                failures.append(f"{name}: {path} differs")


def test():
    for host in hosts:
        (work / host / "x.yaml").write_text(config)
    run(heed, "train", "x.yaml", "--run", str(work / "one"), "threads=1", cwd=work / hosts[0])
    failures = []
    for ranks in (2, 3):
        name = f"run-{ranks}"
        done = mpirun(ranks, "train", "x.yaml", "--run", name, "threads=1")
        if done.returncode != 0:
            failures.append(f"{ranks} ranks: status {done.returncode}\n{done.stderr}")
            continue
        shares = f"{hosts[0]}: {(ranks + 1) // 2}, {hosts[1]}: {ranks // 2}"
        if f"{ranks} ranks on 2 hosts ({shares})" not in done.stderr:
            failures.append(f"{ranks} ranks: the output does not name the hosts\n{done.stderr}")
        if (work / hosts[1] / name).exists():
            failures.append(f"{ranks} ranks: the second host also has a run folder")
        check_equal(name, failures)
    done = mpirun(2, "resume", "run-3", "threads=1", "train.steps=30")  # the run folder is only on the first host
    if done.returncode != 0:
        failures.append(f"resume: status {done.returncode}\n{done.stderr}")
    (work / hosts[1] / "x.yaml").unlink()
    done = mpirun(2, "train", "x.yaml", "--run", "none", "threads=1")
    if done.returncode != 2 or f"rank 1 on {hosts[1]}: " not in done.stderr:
        failures.append(f"a config that exists on one host only is not reported: status {done.returncode}\n{done.stderr}")
    return failures


def test_over_a_lossy_link():
    """Lost packets, which TCP resends, do not affect the run."""
    (work / hosts[1] / "x.yaml").write_text(config)
    failures = []
    done = mpirun(2, "train", "x.yaml", "--run", "lossy", "threads=1")
    if done.returncode != 0:
        failures.append(f"the run over a lossy link failed: status {done.returncode}\n{done.stderr}")
    else:
        check_equal("lossy", failures)
    print(f"the lossy link lost {line.lost} of {line.carried} packets")
    if line.lost == 0:
        failures.append("the lossy link lost no packet")
    return failures


def main():
    if options.command:
        if not make_hosts(options.ms, options.loss):
            return 77
        done = mpirun(2, *options.command)
        print(done.stdout + done.stderr)
        return done.returncode
    if not make_hosts(0, 0):
        return 77
    failures = test()
    remove_hosts()
    if make_hosts(ms=5, loss=1):
        failures += test_over_a_lossy_link()
    for failure in failures:
        print("FAILED:", failure)
    print(f"two hosts: {len(failures)} failed")
    return 1 if failures else 0


remove_hosts()
try:
    status = main()
finally:
    remove_hosts()
    shutil.rmtree(work, ignore_errors=True)
sys.exit(status)
