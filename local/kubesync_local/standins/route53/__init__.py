"""A strict stand-in for Route 53: real HTTP, the real wire format, the real rules; faults on demand."""

from kubesync_local.standins.route53.http_api.faults import ANY_OPERATION, CHANGE, Call, Faults
from kubesync_local.standins.route53.http_api.server import StrictRoute53
from kubesync_local.standins.route53.zone.model import Alias, Change, Limits, SetKey, StoredSet

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
