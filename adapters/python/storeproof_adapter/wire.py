"""Lines of JSON over private copies of stdin and stdout.

Breaking one of these breaks the run: stdout carries protocol and nothing else; every line is UTF-8
whatever the locale says, ends in one LF, and is handed to the pipe before the next is read.
"""

from __future__ import annotations

import json
import os
import sys
from typing import BinaryIO

from .mailbox import Json

REFUSED = -32001
PARSE_ERROR = -32700
INVALID_REQUEST = -32600
NO_SUCH_METHOD = -32601
INVALID_PARAMS = -32602
FAULT = -32603


class RpcError(Exception):
    """An answer that the SDK gives by itself, in JSON-RPC's own codes."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class BadText(ValueError):
    """A request line that is not a JSON text this protocol can carry."""


def take_stdio() -> tuple[BinaryIO, BinaryIO]:
    """Keep the real stdin and stdout for the protocol and return them.

    Afterwards descriptor 1 and `sys.stdout` are stderr, and descriptor 0 is empty: neither a
    `print`, nor a C library, nor a child process can write into the protocol or eat a request.
    """
    requests = os.fdopen(os.dup(0), "rb", 1 << 16)
    answers = os.fdopen(os.dup(1), "wb", 0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    if sys.stdout is not None:
        sys.stdout.flush()  # What was printed so far and sat in the buffer goes to stderr as well.
    sys.stdout = sys.stderr
    return requests, answers


def write_line(answers: BinaryIO, line: bytes) -> None:
    """Hand the whole line to the pipe. `answers` is unbuffered, so nothing stays behind."""
    written = answers.write(line)
    while written < len(line):
        written += answers.write(memoryview(line)[written:])


def decode(line: bytes) -> Json:
    """Read one request line, or raise `BadText`."""
    try:
        value = _DECODER.decode(line.decode("utf-8"))
        if b"\\u" in line and b"\\ud" in line.lower():
            encode(value)  # An escaped lone surrogate parses in Python but cannot be sent back.
    except (ValueError, RecursionError) as why:
        raise BadText(f"{type(why).__name__}: {why}") from why
    return value


def encode(value: Json) -> bytes:
    """One line, LF included. Raises `ValueError` (NaN, Infinity, a lone surrogate, a cycle),
    `TypeError` (not JSON) or `RecursionError` (too deep)."""
    return _ENCODER.encode(value).encode("utf-8") + b"\n"


def _no_constant(word: str) -> float:
    raise BadText(f"{word} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise BadText(f"{digits} is beyond what a double holds")
    return number


# Built once: `json.loads` and `json.dumps` with options build theirs for every line.
_DECODER = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite)
_ENCODER = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":"))
