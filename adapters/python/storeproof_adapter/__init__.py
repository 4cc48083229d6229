"""Stand a Python store before the storeproof bench.

Write a `Mailbox` (one open store), a `Subject` (opens them, says what they can do), and call
`serve(subject)`. `examples/memory_mailbox.py` is a whole adapter on one page.
"""

from .mailbox import Claim, Json, Mailbox, Message, Refused, Seq
from .server import serve
from .subject import Capabilities, Face, Limits, Opened, Server, Subject, method

__all__ = [
    "Capabilities",
    "Claim",
    "Face",
    "Json",
    "Limits",
    "Mailbox",
    "Message",
    "Opened",
    "Refused",
    "Seq",
    "Server",
    "Subject",
    "method",
    "serve",
]
