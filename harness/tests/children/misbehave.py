#!/usr/bin/env python3
"""A child that speaks the adapter protocol and misbehaves in the one way its argument names.

usage: misbehave.py MODE    (each function below is a mode; its decorator says at which call it strikes)
"""

import json
import os
import signal
import sys
import time

OUT, ERR, IN = sys.stdout.buffer, sys.stderr.buffer, sys.stdin.buffer
AT_START = "at start"
MODES = {}
MANIFEST = {
    "protocol": "1",
    "kit": "1.0",
    "subject": {"name": "misbehave", "version": "1"},
    "pid": os.getpid(),
    "capabilities": {"mailbox": True},
    "unknown": {"member": 1},
}
COUNT = {}


def strikes(at):
    def keep(function):
        MODES[function.__name__] = (at, function)
        return function

    return keep


def write(data):
    OUT.write(data if isinstance(data, bytes) else data.encode())
    OUT.flush()


def line(value):
    write(json.dumps(value, ensure_ascii=False) + "\n")


def reply(request, result):
    line({"jsonrpc": "2.0", "id": request["id"], "result": result})


def say(text):
    ERR.write(text.encode())
    ERR.flush()


def hang():
    while True:
        time.sleep(3600)


def sleeper(**how):
    import subprocess  # slow to load, and few modes need it

    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"], **how)


# ---- hangs, exits, signals


@strikes("initialize")
def hang_initialize(request):
    hang()


@strikes("store/open")
def hang_open(request):
    say("opening for ever\n")
    hang()


@strikes("mailbox/append")
def hang_call(request):
    hang()


@strikes("shutdown")
def hang_shutdown(request):
    hang()


@strikes("shutdown")
def stays_after_shutdown(request):
    reply(request, {})
    hang()


@strikes("shutdown")
def no_shutdown(request):
    line({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "no"}})


@strikes(AT_START)
def exit_0(request):
    sys.exit(0)


@strikes(AT_START)
def exit_3(request):
    say("no such driver\n")
    sys.exit(3)


@strikes(AT_START)
def killed_at_start(request):
    os.kill(os.getpid(), signal.SIGKILL)


@strikes("mailbox/append")
def killed_in_call(request):
    say("about to fall\n")
    os.kill(os.getpid(), signal.SIGSEGV)


@strikes("mailbox/append")
def answers_then_exits(request):
    reply(request, {"seq": 1})
    sys.exit(5)


@strikes("mailbox/append")
def closes_stdout(request):
    OUT.close()
    os.close(1)
    hang()


@strikes("mailbox/append")
def exits_under_a_sleeper(request):
    sleeper()
    say("the child ends, the grandchild holds the pipes\n")
    os._exit(4)


@strikes(AT_START)
def slow_start(request):
    time.sleep(0.8)


# ---- what is no message


@strikes(AT_START)
def banner(request):
    write("store ready v1.2\n")


@strikes(AT_START)
def garbage(request):
    write(b"\x00\x01{{{\x1b[31m\n")


@strikes("mailbox/append")
def log_line(request):
    write("debug: handled %d\n" % request["id"])
    reply(request, {"seq": 1})


@strikes("mailbox/append")
def half_then_exit(request):
    write('{"jsonrpc":"2.0","id":%d,"res' % request["id"])
    sys.exit(1)


@strikes("mailbox/append")
def half_then_hang(request):
    write('{"jsonrpc":"2.0","id":%d,"res' % request["id"])
    hang()


@strikes("mailbox/append")
def long_line(request):
    for _ in range(1600):
        write(b"x" * 65536)
    write(b"\n")
    hang()


@strikes("mailbox/append")
def flood(request):
    while True:
        write(b"spam" * 16384)


@strikes("mailbox/append")
def flood_of_lines(request):
    while True:
        write(b"spam\n" * 8192)


@strikes("mailbox/append")
def flood_of_blank_lines(request):
    while True:
        write(b"\r\n" * 8192)


@strikes("mailbox/append")
def flood_of_notifications(request):
    while True:
        write(b'{"jsonrpc":"2.0","method":"log"}\n' * 1000)


@strikes("mailbox/append")
def not_utf8(request):
    say("log \ufffd ")
    ERR.write(b"err\xff\xfe\x80\n")
    ERR.flush()
    write(b'{"jsonrpc":"2.0","id":%d,"result":{"x":"\xff"}}\n' % request["id"])


@strikes("mailbox/append")
def cut_utf8_at_exit(request):
    ERR.write(b"last \xe6")
    ERR.flush()
    sys.exit(0)


def deep(request, levels):
    body = "[" * (levels - 1) + "]" * (levels - 1)
    write('{"jsonrpc":"2.0","id":%d,"result":%s}\n' % (request["id"], body))


@strikes("mailbox/append")
def deep_1101(request):
    deep(request, 1101)


@strikes("mailbox/append")
def deep_1100(request):
    deep(request, 1100)


@strikes("mailbox/append")
def deep_100000(request):
    deep(request, 100000)


def raw_lines(**texts):
    """A mode a text: the line that comes instead of the reply, %d standing for the id."""
    for name, text in texts.items():

        def strike(request, text=text):
            write(text.replace("%d", str(request["id"])) + "\n")

        MODES[name] = ("mailbox/append", strike)


raw_lines(
    batch='[{"jsonrpc":"2.0","id":%d,"result":{}}]',
    null="null",
    string='"ok"',
    number="17",
    empty="{}",
    id_alone='{"jsonrpc":"2.0","id":%d}',
    no_id='{"jsonrpc":"2.0","result":{}}',
    id_null='{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}',
    id_string='{"jsonrpc":"2.0","id":"%d","result":{}}',
    id_fraction='{"jsonrpc":"2.0","id":%d.5,"result":{}}',
    id_wrong='{"jsonrpc":"2.0","id":9%d,"result":{}}',
    no_jsonrpc='{"id":%d,"result":{}}',
    jsonrpc_1='{"jsonrpc":"1.0","id":%d,"result":{}}',
    both='{"jsonrpc":"2.0","id":%d,"result":{},"error":{"code":-32001,"message":"no"}}',
    result_twice='{"jsonrpc":"2.0","id":%d,"result":{},"result":{"seq":1}}',
    error_string='{"jsonrpc":"2.0","id":%d,"error":"no"}',
    error_code_string='{"jsonrpc":"2.0","id":%d,"error":{"code":"x","message":"no"}}',
    error_code_fraction='{"jsonrpc":"2.0","id":%d,"error":{"code":-32001.5,"message":"no"}}',
    error_no_message='{"jsonrpc":"2.0","id":%d,"error":{"code":-32001}}',
    request='{"jsonrpc":"2.0","id":%d,"method":"roots/list"}',
    two_on_a_line='{"jsonrpc":"2.0","id":%d,"result":{}}{"jsonrpc":"2.0","id":%d,"result":{}}',
)


@strikes("mailbox/append")
def repeated(request):
    write('{"jsonrpc":"2.0","id":%d,"result":{"seq":1}}\n' % request["id"] * 2)


@strikes("mailbox/append")
def early(request):
    # In one write, so that the second is there before its request was ever sent.
    text = '{"jsonrpc":"2.0","id":%d,"result":{"seq":%d}}\n'
    write(text % (request["id"], 1) + text % (request["id"] + 1, 2))


@strikes("mailbox/append")
def late(request):
    time.sleep(1.2)
    reply(request, {"seq": 1})


# ---- pipes that are not read


@strikes("mailbox/append")
def stderr_50_mb(request):
    text = b"log line ..........................................................\n" * 1000
    for _ in range(50 * 1024 * 1024 // len(text)):
        ERR.write(text)
    ERR.write(b"the last word\n")
    ERR.flush()
    reply(request, {"seq": 1})


@strikes("mailbox/append")
def stderr_then_exit(request):
    ERR.write(b"x" * 300000 + b"\nthe last word\n")
    ERR.flush()
    sys.exit(6)


def stops_reading(after_handshake):
    while True:
        request = json.loads(IN.readline())
        default(request)
        if request["method"] == "store/open":
            after_handshake()


@strikes(AT_START)
def reads_nothing_then_exit_7(request):
    def end():
        time.sleep(0.3)
        say("config missing\n")
        os._exit(7)

    stops_reading(end)


@strikes(AT_START)
def reads_half_then_exit_3(request):
    def end():
        os.read(0, 65536)
        say("unsupported op\n")
        os._exit(3)

    stops_reading(end)


@strikes(AT_START)
def never_reads(request):
    stops_reading(hang)


@strikes(AT_START)
def talks_before_it_reads(request):
    def talk():
        for _ in range(100):
            write(b'{"jsonrpc":"2.0","method":"log","params":"%s"}\n' % (b"x" * 65536))

    stops_reading(talk)


# ---- families


@strikes("store/open")
def grandchild(request):
    sleeper()
    reply(request, {"store": "s1"})
    hang()


@strikes("store/open")
def grandchild_setsid(request):
    sleeper(start_new_session=True)
    reply(request, {"store": "s1"})
    hang()


@strikes("store/open")
def orphan_setsid(request):
    # Twice forked: by the time of the kill its parent is not the child any more.
    if os.fork() == 0:
        os.setsid()
        if os.fork() != 0:
            os._exit(0)
        hang()
    os.wait()
    reply(request, {"store": "s1"})
    hang()


@strikes("store/open")
def grandchild_bare(request):
    # Neither the group nor the marker is left to find it by.
    sleeper(start_new_session=True, env={"STOREPROOF_TEST": os.environ["STOREPROOF_TEST"]})
    reply(request, {"store": "s1"})
    hang()


@strikes(AT_START)
def sigterm_ignored(request):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    MODES[sys.argv[1]] = ("mailbox/append", lambda request: hang())


@strikes("store/open")
def locked_folder(request):
    folder = os.path.join(os.environ["TMPDIR"], "locked", "in")
    os.makedirs(folder)
    os.chmod(os.path.dirname(folder), 0)
    reply(request, {"store": "s1", "tmp": os.environ["TMPDIR"], "cwd": os.getcwd()})


# ---- handshakes


@strikes("initialize")
def protocol_2(request):
    reply(request, {"protocol": "2.0", "other": "form"})


@strikes("initialize")
def kit_2(request):
    reply(request, dict(MANIFEST, kit="2.1"))


@strikes("initialize")
def kit_minor(request):
    reply(request, dict(MANIFEST, kit="1.7"))


@strikes("initialize")
def kit_word(request):
    reply(request, dict(MANIFEST, kit="newest"))


@strikes("initialize")
def no_manifest(request):
    reply(request, {"protocol": "1", "kit": "1.0", "subject": "me"})


@strikes("initialize")
def handshake_error(request):
    line({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32603, "message": "no db"}})


@strikes("initialize")
def other_manifest_each_time(request):
    reply(request, dict(MANIFEST, limits={"maxNameBytes": int(time.time() * 1000)}))


@strikes("initialize")
def echoes_handshake(request):
    reply(request, dict(MANIFEST, server={"asked": request["params"]}))


# ---- well behaved, in unusual ways


@strikes("mailbox/append")
def notifies(request):
    write('{"method":"log/message","params":{"text":"hello"}}\n')
    reply(request, {"seq": 1})


@strikes("mailbox/append")
def crlf(request):
    text = '{"jsonrpc":"2.0","id":%d,"result":{"body":"a\\r\\nb"}}' % request["id"]
    write("\r\n\n  \n" + text + "\r\n\r\n")


@strikes("mailbox/append")
def byte_by_byte(request):
    body = {"jsonrpc": "2.0", "id": request["id"], "result": {"body": "\u8bfb\u2014\U0001f642\u00e9"}}
    for byte in (json.dumps(body, ensure_ascii=False) + "\n").encode():
        write(bytes([byte]))
        time.sleep(0.001)


@strikes("mailbox/append")
def large(request):
    reply(request, {"pad": "p" * request["params"]["bytes"]})


@strikes("mailbox/append")
def refuses(request):
    error = {"code": -32001, "message": "no", "data": {"reason": "invalid_name"}, "more": 1}
    line({"jsonrpc": "2.0", "id": request["id"], "error": error, "more": 1})


@strikes("mailbox/append")
def crashes(request):
    if request["params"].get("crash"):
        sys.exit(9)
    reply(request, {"seq": 1})


@strikes("initialize")
def starts_once(request):
    # Beside the child's own TMPDIR, which is fresh at each start.
    flag = os.path.join(os.environ["TMPDIR"], "..", "started")
    if os.path.exists(flag):
        say("already started once\n")
        sys.exit(2)
    open(flag, "w").close()
    reply(request, MANIFEST)


@strikes("mailbox/append")
def echo(request):
    reply(request, {"echo": request["params"]})


def default(request):
    if request["method"] == "initialize":
        reply(request, MANIFEST)
    elif request["method"] == "store/open":
        reply(request, {"store": "s1"})
    else:
        reply(request, {})
        if request["method"] == "shutdown":
            sys.exit(0)


def main():
    mode = sys.argv[1]
    if MODES[mode][0] == AT_START:
        MODES[mode][1](None)
    while True:
        text = IN.readline()
        if not text:
            sys.exit(0)
        request = json.loads(text)
        at, strike = MODES[mode]
        if request["method"] == at:
            strike(request)
        else:
            default(request)


main()
