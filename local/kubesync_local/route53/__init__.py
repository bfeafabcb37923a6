"""A strict stand-in for Route 53: real HTTP, the real wire format, the real rules; faults on demand."""

from kubesync_local.route53.faults import ANY_OPERATION, CHANGE, Call, Faults
from kubesync_local.route53.model import Alias, Change, Limits, SetKey, StoredSet
from kubesync_local.route53.server import StrictRoute53

__all__ = [
    "ANY_OPERATION",
    "CHANGE",
    "Alias",
    "Call",
    "Change",
    "Faults",
    "Limits",
    "SetKey",
    "StoredSet",
    "StrictRoute53",
]
