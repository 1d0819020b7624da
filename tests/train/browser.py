"""A browser that renders pages: headless Chromium, driven through the DevTools protocol over a pipe."""
import base64
import fcntl
import json
import os
import select
import shutil
import struct
import subprocess
import tempfile
import zlib

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_chromium():
    """The path of Chromium, or None."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Browser:
    """One tab of a new browser with an empty profile: `with Browser(program) as browser`."""

    def __init__(self, program, width=1100, height=900):
        self.profile = tempfile.mkdtemp(prefix="heed-browser-")
        pipes = os.pipe() + os.pipe()  # also reserve descriptors 3 and 4, on which the browser reads and writes
        theirs, self.to, self.come, answers = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in pipes)

        def connect():
            os.dup2(theirs, 3)
            os.dup2(answers, 4)

        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--hide-scrollbars", "--remote-debugging-pipe",
             "--user-data-dir=" + self.profile],
            preexec_fn=connect, pass_fds=(3, 4), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for end in pipes + (theirs, answers):
            os.close(end)
        self.last, self.session, self.buffer, self.events = 0, None, b"", []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for part in ("Page", "Runtime", "Log", "Network"):
            self.call(part + ".enable")
        self.size = width, height
        self.resize()

    def resize(self, width=None):
        """Sets the width of the window; by default, that of the beginning."""
        self.call("Emulation.setDeviceMetricsOverride", width=width or self.size[0], height=self.size[1],
                  deviceScaleFactor=1, mobile=False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def receive(self):
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.come], [], [], 60)
            more = os.read(self.come, 1 << 20) if ready else b""
            if not more:
                raise RuntimeError("the browser ended, or sent nothing for a minute")
            self.buffer += more
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def call(self, method, **parameters):
        self.last += 1
        message = {"id": self.last, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def open(self, path, scheme):
        """Loads a file, or an address http://…, in a colour scheme, "light" or "dark"; returns wrong()."""
        self.events = []
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Page.navigate", url=str(path) if "://" in str(path) else "file://" + os.path.abspath(path))
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self.receive())
        self.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done, 0)))")
        return self.wrong()

    def wrong(self):
        """Errors, warnings and requests of the page since it was opened, one string each."""
        wrong = []
        for event in self.events:
            method, about = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                details = about["exceptionDetails"]
                wrong.append(details.get("exception", {}).get("description") or details["text"])
            elif method == "Runtime.consoleAPICalled" and about["type"] in ("error", "warning", "assert"):
                wrong.append("console: " + json.dumps(about["args"]))
            elif method == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
                wrong.append("log: " + about["entry"]["text"])
            elif method == "Network.loadingFailed":
                wrong.append("a request failed: " + about["errorText"])
            elif method == "Network.requestWillBeSent":
                url = about["request"]["url"]
                if not url.startswith(("data:", "blob:")) and about.get("type") != "Document":
                    wrong.append("the page requests " + url[:200])
        return wrong

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def screenshot(self, **clip):
        """A screenshot of the view, or of the area `clip` (x, y, width, height, scale), as the bytes of a PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=True,
                                          **({"clip": clip} if clip else {}))["data"])


def pixels(png):
    """Yields (red, green, blue) for each pixel of a PNG, row by row. Supports 8 bits, RGB or RGBA, no interlacing."""
    at, data = 8, b""
    while at < len(png):
        size, kind = struct.unpack(">I4s", png[at:at + 8])
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", png[at + 8:at + 18])
            if depth != 8 or colour not in (2, 6):
                raise ValueError(f"PNG: expected depth 8 and colour type 2 or 6, got {depth} and {colour}")
        if kind == b"IDAT":
            data += png[at + 8:at + 8 + size]
        at += size + 12
    step = 3 if colour == 2 else 4
    raw, row, before = zlib.decompress(data), width * step, bytearray(width * step)
    for y in range(height):
        kind, line = raw[y * (row + 1)], bytearray(raw[y * (row + 1) + 1:(y + 1) * (row + 1)])
        for i in range(row):
            left = line[i - step] if i >= step else 0
            up, corner = before[i], before[i - step] if i >= step else 0
            if kind == 4:  # Paeth: whichever of left, up and corner is nearest to left + up − corner
                near = left + up - corner
                guess = min((abs(near - left), 0, left), (abs(near - up), 1, up), (abs(near - corner), 2, corner))[2]
            else:
                guess = (0, left, up, (left + up) // 2)[kind]
            line[i] = (line[i] + guess) & 255
        before = line
        yield from zip(line[::step], line[1::step], line[2::step])
