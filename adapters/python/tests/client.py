"""Drives an adapter as the bench does: a child process, one JSON line each way."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

SDK = Path(__file__).resolve().parents[1]
EXAMPLES = SDK / "examples"
ODD = Path(__file__).resolve().parent / "odd_subject.py"
ANSWER_WAIT_S_MAX = 10.0

sys.path[:0] = [str(SDK), str(EXAMPLES)]


class WireError(Exception):
    """The child answered with an error; `reason` is a refusal's code."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(str(error))
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.data: dict[str, Any] = error.get("data", {})
        self.reason: str | None = self.data.get("reason")


class Child:
    """A started adapter. Every wait is bounded, and leaving the `with` block leaves no process."""

    def __init__(self, script: Path, *arguments: str, **environment: str) -> None:
        self._scratch = tempfile.TemporaryDirectory(prefix="storeproof-test-")
        inherited = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
        self.process = subprocess.Popen(
            [sys.executable, str(script), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd="/",
            env={**inherited, "TMPDIR": self._scratch.name, **environment},
            # Whoever runs the tests in the background may have had SIGINT ignored, and children inherit it.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._stderr: list[bytes] = []
        self._ids = 0
        self._threads = [threading.Thread(target=self._pump, daemon=True)]
        self._threads.append(threading.Thread(target=self._drain, daemon=True))
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def call(self, method: str, **params: Any) -> Any:
        """The result, or `WireError`."""
        self._ids += 1
        answer = self.ask({"jsonrpc": "2.0", "id": self._ids, "method": method, "params": params})
        assert answer["id"] == self._ids, answer
        if "error" in answer:
            raise WireError(answer["error"])
        return answer["result"]

    def ask(self, request: Any) -> dict[str, Any]:
        """Any JSON value as a request; the whole answer."""
        return self.ask_raw(json.dumps(request, ensure_ascii=False).encode("utf-8") + b"\n")

    def ask_raw(self, line: bytes) -> dict[str, Any]:
        self.send(line)
        answer: dict[str, Any] = json.loads(self.line().decode("utf-8"))
        assert answer["jsonrpc"] == "2.0" and ("result" in answer) != ("error" in answer), answer
        return answer

    def send(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def line(self) -> bytes:
        """The next line of stdout; b"" at its end."""
        return self._lines.get(timeout=ANSWER_WAIT_S_MAX)

    def open(self) -> dict[str, Any]:
        return dict(self.call("store/open"))

    def end_of_input(self) -> int:
        """Close stdin and return the exit status."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.exit_status()

    def exit_status(self) -> int:
        return self.process.wait(timeout=ANSWER_WAIT_S_MAX)

    def stderr(self) -> str:
        """All of stderr; only once the child has ended."""
        self._threads[1].join(ANSWER_WAIT_S_MAX)
        return b"".join(self._stderr).decode("utf-8")

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        for thread in self._threads:
            thread.join(ANSWER_WAIT_S_MAX)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            try:
                pipe.close()
            except BrokenPipeError:
                pass
        self._scratch.cleanup()

    def _pump(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(b"")

    def _drain(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._stderr.append(line)
