"""Shows problems as Kubernetes Events on a Service, for ``kubectl describe service``. Needs the right to create events.

Source: Event v1 core (https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/). The same reason on the
same object gives the same name, so the API server refuses a second one. It deletes an Event after an hour by itself.
"""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final
from urllib.parse import quote

from kubesync.domain.dns.records import Problem
from kubesync.domain.errors import StatusError
from kubesync.domain.objects import ObjectKey
from kubesync.domain.reasons import advice_for
from kubesync.domain.sources.registry import KINDS
from kubesync.kubernetes.transport.client import ApiClient
from kubesync.kubernetes.transport.urls import ApiRequest

# Validation of the API server: message at most 1,024 bytes, names at most 253 characters.
MAX_MESSAGE_BYTES: Final = 1024
_MAX_SERVICE_CHARACTERS: Final = 63
_ALREADY_EXISTS: Final = 409


@dataclass(frozen=True, slots=True)
class ServiceEvent:
    """One problem to show on a Service. ``uid`` and ``resource_version`` are those of the Service as it was seen.

    The same problem of the same object is equal, at whatever version it was seen.
    """

    service: ObjectKey
    uid: str
    resource_version: int = field(compare=False)
    problem: Problem


def post_event(api: ApiClient, event: ServiceEvent, at: float) -> None:
    """Write one Event. Succeeds too if the Event exists already. ``at``: epoch seconds.

    Raises:
        ListenerError: the Event could not be written; DeniedError if that is forbidden.
        StoppedError: the client was shut down.
    """
    try:
        api.fetch(event_request(event, at))
    except StatusError as error:
        if error.status != _ALREADY_EXISTS:
            raise


def event_request(event: ServiceEvent, at: float) -> ApiRequest:
    """Build the request that creates an Event. ``at``: epoch seconds."""
    key, problem = event.service, event.problem
    # The same problem gives the same name: the API server then refuses to store it twice.
    identity = "\n".join((event.uid, problem.code, problem.subject, problem.message))
    digest = sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    when = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    document = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{key.name[:_MAX_SERVICE_CHARACTERS]}.{digest}", "namespace": key.namespace},
        "involvedObject": {
            "apiVersion": KINDS[key.kind].api_version,
            "kind": key.kind,
            "name": key.name,
            "namespace": key.namespace,
            "uid": event.uid,
            "resourceVersion": str(event.resource_version),
        },
        "reason": problem.code,
        "message": _message_with_advice(problem),
        "type": "Warning",
        "source": {"component": "kubesync"},
        "firstTimestamp": when,
        "lastTimestamp": when,
        "count": 1,
    }
    path = f"/api/v1/namespaces/{quote(key.namespace, safe='')}/events"
    return ApiRequest(path, body=json.dumps(document).encode("ascii"))


def _message_with_advice(problem: Problem) -> str:
    """The problem and what to do about it, cut to what the API server accepts."""
    text = f"{problem.subject}: {problem.message}" if problem.subject else problem.message
    advice = advice_for(problem.code)
    full = f"{text}. {advice}" if advice else text
    return full.encode("utf-8", "replace")[:MAX_MESSAGE_BYTES].decode("utf-8", "ignore")
