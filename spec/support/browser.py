"""browser.py - drive headless Chromium over its debugging pipe: browser.py PAGE STEPS.json

Steps, in order, each an object with one of:
  {"eval": EXPRESSION}         its value (JSON) is printed
  {"click": SELECTOR}          a mouse click in the middle of the first element that matches
  {"type": [SELECTOR, TEXT]}   focus it and type
  {"key": NAME}                press a key, as "Escape" or "Enter"
  {"shot": PATH}               a PNG
  {"resize": [WIDTH, HEIGHT]}
Prints {"values": [...], "requests": [URL...], "errors": [...]}: requests are all that the page made
but its own document; the network is off.
"""
import base64
import json
import os
import subprocess
import sys
import tempfile

page, steps = sys.argv[1], json.load(open(sys.argv[2]))
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--hide-scrollbars", "--window-size=1200,700", "--remote-debugging-pipe"]


class Browser:
    def __init__(self, profile):
        read_end, self.write = os.pipe()
        self.read, write_end = os.pipe()

        def set_up():
            os.dup2(read_end, 13)
            os.dup2(write_end, 14)
            os.dup2(13, 3)
            os.dup2(14, 4)

        self.process = subprocess.Popen(
            ["chromium", *FLAGS, "--user-data-dir=" + profile, "about:blank"],
            preexec_fn=set_up, close_fds=False, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(read_end)
        os.close(write_end)
        self.buffer, self.number, self.events, self.session = b"", 0, [], None

    def receive(self):
        while b"\0" not in self.buffer:
            piece = os.read(self.read, 65536)
            if not piece:
                raise SystemExit("the browser ended")
            self.buffer += piece
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise SystemExit(method + ": " + answer["error"]["message"])
                return answer["result"]
            self.events.append(answer)

    def wait_for(self, method):
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self.receive())

    def value(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in answer:
            raise SystemExit(expression + ": " + json.dumps(answer["exceptionDetails"]))
        return answer["result"].get("value")


def mouse(browser, selector):
    x, y = browser.value("""(() => {
      const box = document.querySelector(%s).getBoundingClientRect();
      return [box.x + box.width / 2, box.y + box.height / 2]; })()""" % json.dumps(selector))
    for kind in ("mousePressed", "mouseReleased"):
        browser.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)


def run(browser, step, values):
    (kind, what), = step.items()
    if kind == "eval":
        values.append(browser.value(what))
    elif kind == "click":
        mouse(browser, what)
    elif kind == "type":
        browser.value("document.querySelector(%s).focus()" % json.dumps(what[0]))
        browser.call("Input.insertText", text=what[1])
    elif kind == "key":
        codes = {"Escape": 27, "Enter": 13}
        for event in ("rawKeyDown", "keyUp"):
            browser.call("Input.dispatchKeyEvent", type=event, key=what, code=what,
                         windowsVirtualKeyCode=codes[what])
    elif kind == "resize":
        browser.call("Emulation.setDeviceMetricsOverride", width=what[0], height=what[1],
                     deviceScaleFactor=1, mobile=False)
    elif kind == "shot":
        shot = browser.call("Page.captureScreenshot")
        with open(what, "wb") as out:
            out.write(base64.b64decode(shot["data"]))


with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
    browser = Browser(profile)
    try:
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        browser.session = browser.call("Target.attachToTarget", targetId=target,
                                       flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            browser.call(domain + ".enable")
        browser.call("Network.emulateNetworkConditions", offline=True, latency=0,
                     downloadThroughput=-1, uploadThroughput=-1)
        browser.events = []
        browser.call("Page.navigate", url="file://" + os.path.abspath(page))
        browser.wait_for("Page.loadEventFired")
        values = []
        for step in steps:
            run(browser, step, values)
        requests, errors = [], []
        for event in browser.events:
            params = event.get("params", {})
            if event.get("method") == "Network.requestWillBeSent":
                requests.append(params["request"]["url"])
            elif event.get("method") == "Runtime.exceptionThrown":
                errors.append(params["exceptionDetails"]["text"])
            elif event.get("method") == "Log.entryAdded":
                errors.append(params["entry"]["text"])
            elif event.get("method") == "Page.javascriptDialogOpening":
                errors.append("dialog: " + params["message"])
        own = "file://" + os.path.abspath(page)
        print(json.dumps({"values": values, "requests": [u for u in requests if u != own],
                          "errors": errors}))
    finally:
        browser.process.kill()
        browser.process.wait()
