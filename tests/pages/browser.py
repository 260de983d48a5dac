"""A headless Chromium that is told what to do through two pipes, by the DevTools protocol. Only the standard library."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time


class BrowserError(Exception):
    pass


class Browser:
    """Messages are JSON with a zero byte behind each: descriptor 3 of the browser reads them, 4 writes."""

    def __init__(self):
        program = shutil.which("chromium")
        if program is None:
            raise BrowserError("chromium is not installed: scripts/setup pages")
        self.profile = tempfile.mkdtemp(prefix="oxbow-pages-")
        to_read, self.to_browser = os.pipe()
        self.from_browser, to_write = os.pipe()

        def pipes():
            # First out of the way: one of them may be 3 or 4 already.
            read, write = os.dup(to_read), os.dup(to_write)
            os.dup2(read, 3)
            os.dup2(write, 4)

        self.process = subprocess.Popen(
            [program, "--headless=new", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu", "--no-sandbox",
             "--disable-dev-shm-usage", "--hide-scrollbars", "--user-data-dir=" + self.profile, "about:blank"],
            preexec_fn=pipes, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.buffer = b""
        self.number = 0
        self.session = None
        self.events = []
        for _ in range(100):
            targets = [t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page"]
            if targets:
                break
            time.sleep(0.1)
        self.session = self.call("Target.attachToTarget", targetId=targets[0]["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
            self.process.wait(20)
        except (BrowserError, OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.to_browser)
        os.close(self.from_browser)
        shutil.rmtree(self.profile, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _read(self):
        while b"\0" not in self.buffer:
            piece = os.read(self.from_browser, 1 << 20)
            if not piece:
                raise BrowserError("the browser has ended")
            self.buffer += piece
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to_browser, data):]
        while True:
            answer = self._read()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            if "method" in answer:
                self.events.append(answer)

    def open(self, path, width, height, dark):
        """The page at a width, in light or dark; the events that loading gave are in self.events then."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setTouchEmulationEnabled", enabled=width < 600)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.events = []
        self.call("Page.navigate", url=path if path.startswith("http://") else "file://" + os.path.abspath(path))
        for _ in range(600):
            if self.value("document.readyState") == "complete":
                break
            time.sleep(0.05)
        self.settle()

    def settle(self):
        """What is drawn after a change of sizes is drawn in the frame that follows."""
        self.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => done(1), 30))))")

    def value(self, script):
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise BrowserError(details.get("exception", {}).get("description", details["text"]))
        return result["result"].get("value")

    def middle(self, selector):
        """Where a click has to go, after scrolling there."""
        place = self.value(f"(() => {{ const node = document.querySelector({json.dumps(selector)}); if (!node) return null;"
                           "node.scrollIntoView({block: 'center'}); const box = node.getBoundingClientRect();"
                           "return [box.x + box.width / 2, box.y + box.height / 2]; })()")
        if place is None:
            raise BrowserError("nothing is " + selector)
        return place

    def click(self, selector):
        x, y = self.middle(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        self.settle()

    def tap(self, selector):
        x, y = self.middle(selector)
        self.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        self.settle()

    def key(self, name):
        codes = {"Escape": 27, "ArrowRight": 39, "Enter": 13, "Tab": 9}
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=codes[name])
        self.settle()

    def screenshot(self, path, clip=None):
        options = {"format": "png"}
        if clip:
            options["clip"] = dict(zip(("x", "y", "width", "height"), clip), scale=1)
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", **options)["data"]))
