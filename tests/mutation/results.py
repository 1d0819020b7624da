"""The results of a run, a line of JSON for each fault, so that the run can be resumed."""
import hashlib
import json
import threading


class Results:
    def __init__(self, path, resume):
        self.path, self.lock = path, threading.Lock()
        self.known = {}
        if resume and path.exists():
            for record in map(json.loads, path.read_text().splitlines()):
                self.known[record["fault"]] = record
            # Only caught faults are skipped: new tests may detect the others.
            self.known = {key: record for key, record in self.known.items() if record["verdict"] == "caught"}
        path.write_text("".join(json.dumps(record) + "\n" for record in self.known.values()))

    def of(self, fault):
        return self.known.get(digest(fault))

    def record(self, fault, verdict, by, seconds):
        record = {"fault": digest(fault), "name": fault.name, "verdict": verdict, "by": by, "seconds": round(seconds, 1)}
        with self.lock:
            self.known[record["fault"]] = record
            with self.path.open("a") as file:
                file.write(json.dumps(record) + "\n")
        return record


def digest(fault):
    """Identifies a fault by its content, so that a changed fault counts as a new one."""
    return hashlib.sha256("\0".join((fault.file, fault.old, fault.new)).encode()).hexdigest()[:16]
