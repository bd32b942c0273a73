"""A driver as a process: started, asked by lines of JSON, killed, and ended by the end of its input."""

import contextlib
import itertools
import json
import queue
import subprocess
import threading
from collections.abc import Mapping, Sequence
from typing import Any

PATIENCE_SECONDS = 20.0
END_SECONDS = 10.0


class Call:
    """An op that was sent; its answer comes when it comes."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._answers: queue.Queue[dict[str, Any]] = queue.Queue()
        self.answered = False

    def settle(self, answer: dict[str, Any]) -> None:
        self.answered = True
        self._answers.put(answer)

    def answer(self) -> dict[str, Any]:
        """`{"ok": ...}` or `{"error": ...}`; AssertionError when none comes in 20 s."""
        try:
            return self._answers.get(timeout=PATIENCE_SECONDS)
        except queue.Empty:
            raise AssertionError(f"op {self.number} was not answered in {PATIENCE_SECONDS:g} s") from None


class Driver:
    """One process of a driver.

    Args:
        command: that starts it.
        environ: all of its environment.
        port: where its agent listens.
    """

    def __init__(self, command: Sequence[str], environ: Mapping[str, str], port: int) -> None:
        self.base = f"http://127.0.0.1:{port}"
        self._process = subprocess.Popen(
            command,
            env={**environ, "PORT": str(port)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._numbers = itertools.count(1)
        self._calls: dict[int, Call] = {}
        self._ready = Call(0)
        self._errors: list[str] = []
        self._readers = [threading.Thread(target=each, daemon=True) for each in (self._read, self._read_errors)]
        for reader in self._readers:
            reader.start()

    def wait_until_ready(self) -> None:
        """Return once its agent is registered."""
        answer = self._ready.answer()
        assert answer == {"ready": True}, f"{answer}\n{''.join(self._errors)}"

    def send(self, op: str, **args: Any) -> Call:
        """Ask for something, and do not wait for it."""
        call = Call(next(self._numbers))
        self._calls[call.number] = call
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"id": call.number, "op": op, "args": args}) + "\n")
        self._process.stdin.flush()
        return call

    def ask(self, op: str, **args: Any) -> Any:
        """What an op that has to go well returns."""
        answer = self.send(op, **args).answer()
        assert "ok" in answer, f"{op}: {answer}"
        return answer["ok"]

    def kill(self) -> None:
        """End it as a power cut does."""
        self._process.kill()
        self._gone()

    def end(self) -> None:
        """End its input, on which it ends by itself; AssertionError when it does not, or not well."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            status = self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            status = None
            self._process.kill()
        self._gone()
        assert status == 0, f"it ended with {status}:\n{''.join(self._errors)}"

    def close(self) -> None:
        """Be sure that nothing of it is left."""
        if self._process.poll() is None:
            self._process.kill()
        self._gone()

    def _gone(self) -> None:
        self._process.wait()
        for reader in self._readers:
            reader.join()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._take(line)
        for call in (self._ready, *self._calls.values()):
            call.settle({"error": {"kind": "DriverEnded", "is": [], "code": None}})

    def _take(self, line: str) -> None:
        try:
            answer = json.loads(line)
        except ValueError:
            self._errors.append(f"no JSON on its output: {line}")
            return
        if "ready" in answer:
            self._ready.settle(answer)
        else:
            self._calls.pop(answer.pop("id")).settle(answer)

    def _read_errors(self) -> None:
        assert self._process.stderr is not None
        self._errors.extend(self._process.stderr)
