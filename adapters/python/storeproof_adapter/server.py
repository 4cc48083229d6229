"""`serve`: read a line, have it answered, write the answer, until the bench is done."""

from __future__ import annotations

import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import BinaryIO, Callable

from .session import Request, Session, read_request
from .subject import Subject
from .wire import take_stdio, write_line

_STACK_BYTES = 64 << 20
_RECURSION_LEVELS_MAX = 10_000


def serve(subject: Subject | Callable[[], Subject], *, threads: int = 1) -> None:
    """Serve `subject` until `shutdown` or the end of stdin, then return.

    Every call runs on one thread, one after the other. It is not the main thread: hand over the
    class itself (`serve(MySubject)`) and the subject is built there too. `threads` > 1 runs the
    calls on a pool instead and needs `Capabilities(concurrent=True)`.
    """
    requests, answers = take_stdio()
    _end_quietly_on_interrupt()
    # 1,100 levels of JSON need more stack than the default, in the author's code too.
    sys.setrecursionlimit(max(sys.getrecursionlimit(), _RECURSION_LEVELS_MAX))
    threading.stack_size(_STACK_BYTES)
    raised: list[BaseException] = []

    def run() -> None:
        try:
            built = subject if isinstance(subject, Subject) else subject()
            _converse(Session(built), requests, answers, threads)
        except BrokenPipeError:
            pass  # The bench is gone: nobody is left to answer to.
        except BaseException as why:
            raised.append(why)

    thread = threading.Thread(target=run, name="storeproof", daemon=True)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]


def _end_quietly_on_interrupt() -> None:
    # Ctrl-C reaches the whole process group: end at once and leave the report to the bench.
    on_main = threading.current_thread() is threading.main_thread()
    if on_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _converse(session: Session, requests: BinaryIO, answers: BinaryIO, threads: int) -> None:
    if threads > 1 and not session.subject.capabilities.concurrent:
        raise ValueError("threads > 1 needs Capabilities(concurrent=True)")
    pool: ThreadPoolExecutor | None = ThreadPoolExecutor(threads) if threads > 1 else None
    one_line_at_a_time = threading.Lock()

    def answer(request: Request) -> None:
        line = session.answer(request)
        with one_line_at_a_time:
            write_line(answers, line)

    try:
        while not session.ended:
            line = requests.readline()
            if not line.endswith(b"\n"):
                if line:
                    print("storeproof: stdin ended inside a line, dropped", file=sys.stderr)
                break
            request = read_request(line) if not line.isspace() else None
            if request is None or request.notification:
                continue
            if pool is not None and request.method == "shutdown":
                pool.shutdown(wait=True)  # What was asked before is answered before.
            if pool is None or request.method in ("initialize", "shutdown"):
                answer(request)
            else:
                pool.submit(answer, request)
    finally:
        if pool is not None:
            pool.shutdown(wait=True)
        session.end()
