"""Servers that repeat the token that they were sent: it is nowhere afterwards. Every stack looks when it ends (I8)."""

import json

from harness.hurried import a_hurried_stack
from harness.stack import TOKEN
from kubesync_local.standins.apiserver.transport.faults import Answer, Fault, RawLine


def play_repeated(how: str) -> None:
    """``how``: in the Status of a refusal (its code), in the reason of a stream's end, or in a list of another kind."""
    said = f"no access with Bearer {TOKEN}"
    status = {"kind": "Status", "message": said, "reason": said, "code": 500}
    if how == "stream":
        line = json.dumps({"type": "ERROR", "object": status}, separators=(",", ":")).encode() + b"\n"
        fault: Fault = RawLine(line)
    elif how == "long stream":
        long = {**status, "message": "x" * 480 + TOKEN}
        fault = RawLine(json.dumps({"type": "ERROR", "object": long}, separators=(",", ":")).encode() + b"\n")
    else:
        fault = Answer(int(how), body=json.dumps(status).encode())
    with a_hurried_stack() as stack:
        stack.api.faults.add(fault, verb="watch" if "stream" in how else None, times=None)
        stack.add_cluster()
        running = stack.start()
        running.wait_for(lambda: sum(1 for what, _ in running.events if what == "error") >= 3)
        running.end()


HOW = ("401", "403", "410", "429", "500", "stream", "long stream")
