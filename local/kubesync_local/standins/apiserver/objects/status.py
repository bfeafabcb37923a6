"""Refusals: the Status bodies of a real API server, as errors that the HTTP layer answers with."""

from collections.abc import Sequence
from typing import Any

from kubesync_local.standins.apiserver.objects.resources import ResourceType

JsonObject = dict[str, Any]


class ApiStatusError(Exception):
    """A request is refused; ``body`` is the Status object to answer with, ``headers`` go with it."""

    def __init__(self, code: int, body: JsonObject, headers: dict[str, str] | None = None) -> None:
        super().__init__(f"{code} {body.get('reason', '')}: {body.get('message', '')}")
        self.code = code
        self.body = body
        self.headers = headers or {}


def status_body(
    code: int, reason: str, message: str, details: JsonObject | None = None, metadata: JsonObject | None = None
) -> JsonObject:
    """A Status of a failure, its fields in the order of the wire. An empty reason and absent details are left out."""
    body: JsonObject = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": metadata or {},
        "status": "Failure",
        "message": message,
    }
    if reason:
        body["reason"] = reason
    if details is not None:
        body["details"] = details
    body["code"] = code
    return body


def _error(
    code: int, reason: str, message: str, details: JsonObject | None = None, headers: dict[str, str] | None = None
) -> ApiStatusError:
    return ApiStatusError(code, status_body(code, reason, message, details), headers)


def _details(resource: ResourceType, name: str = "") -> JsonObject:
    details: JsonObject = {"name": name} if name else {}
    if resource.group:
        details["group"] = resource.group
    details["kind"] = resource.plural
    return details


def bad_request(message: str) -> ApiStatusError:
    """400: the request itself is malformed."""
    return _error(400, "BadRequest", message)


def unauthorized() -> ApiStatusError:
    """401: no token, or an unknown one."""
    return _error(401, "Unauthorized", "Unauthorized")


def forbidden(
    user: str, verb: str, resource: ResourceType, namespace: str, name: str, subresource: str = ""
) -> ApiStatusError:
    """403: a known user, but not allowed."""
    scope = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
    subject = f'{resource.qualified} "{name}"' if name else resource.qualified
    what = f"{resource.plural}/{subresource}" if subresource else resource.plural
    message = (
        f'{subject} is forbidden: User "{user}" cannot {verb} resource "{what}" in API group "{resource.group}" {scope}'
    )
    return _error(403, "Forbidden", message, _details(resource, name), {"X-Content-Type-Options": "nosniff"})


def no_such_resource() -> ApiStatusError:
    """404: the path names no resource."""
    return _error(404, "NotFound", "the server could not find the requested resource", {})


def not_found(resource: ResourceType, name: str) -> ApiStatusError:
    """404: no such object."""
    return _error(404, "NotFound", f'{resource.qualified} "{name}" not found', _details(resource, name))


def method_not_allowed() -> ApiStatusError:
    """405: the resource exists, the method does not fit it."""
    return _error(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def already_exists(resource: ResourceType, name: str) -> ApiStatusError:
    """409 on a create."""
    return _error(409, "AlreadyExists", f'{resource.qualified} "{name}" already exists', _details(resource, name))


def conflict(resource: ResourceType, name: str, why: str = "") -> ApiStatusError:
    """409 on an update with a stale version, or a precondition that does not hold."""
    why = why or "the object has been modified; please apply your changes to the latest version and try again"
    message = f'Operation cannot be fulfilled on {resource.qualified} "{name}": {why}'
    return _error(409, "Conflict", message, _details(resource, name))


def unknown_fields(resource: ResourceType, fields: Sequence[str]) -> ApiStatusError:
    """400: an object with fields that its type does not have, as ``fieldValidation=Strict`` refuses it."""
    said = ", ".join(f'unknown field "{field}"' for field in fields)
    kind, version = resource.kind, resource.version
    return bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: strict decoding error: {said}')


def unsupported_media_type(given: str) -> ApiStatusError:
    """415: a patch of a kind that is not served here."""
    message = (
        f"the body of the request was in an unknown format - accepted media types include: "
        f"application/merge-patch+json, application/strategic-merge-patch+json (given: {given})"
    )
    return _error(415, "UnsupportedMediaType", message)


def not_json(media_type: str) -> ApiStatusError:
    """415: a body in another form, as `kubectl create service` sends it. kubectl shows the message."""
    message = (
        f"this stand-in reads JSON only, not {media_type}: add --dry-run=client -o yaml to the command, "
        "and pipe it into: kubectl apply -f -"
    )
    return _error(415, "UnsupportedMediaType", message)


def invalid(resource: ResourceType, name: str, field: str, reason: str, message: str) -> ApiStatusError:
    """422: the object breaks a rule at ``field``; ``reason`` is such as ``FieldValueRequired``."""
    details: JsonObject = {"name": name}
    if resource.group:
        details["group"] = resource.group
    details["kind"] = resource.kind
    details["causes"] = [{"reason": reason, "message": message, "field": field}]
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    return _error(422, "Invalid", f'{kind} "{name}" is invalid: {field}: {message}', details)


def invalid_list_options(field: str, message: str) -> ApiStatusError:
    """422: query parameters that cannot be combined."""
    details = {
        "group": "meta.k8s.io",
        "kind": "ListOptions",
        "causes": [{"reason": "FieldValueForbidden", "message": message, "field": field}],
    }
    return _error(422, "Invalid", f'ListOptions.meta.k8s.io "" is invalid: {field}: {message}', details)


def bad_version(given: str) -> ApiStatusError:
    """500, as recorded: a resourceVersion that is not a number."""
    message = f'resourceVersion: Invalid value: "{given}": strconv.ParseUint: parsing "{given}": invalid syntax'
    return _error(500, "", message)


def version_too_large(given: int, current: int) -> ApiStatusError:
    """504, as recorded: a list at a version that has not come."""
    details: JsonObject = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }
    message = f"Timeout: Too large resource version: {given}, current: {current}"
    return _error(504, "Timeout", message, details, {"Retry-After": "1"})


def expired_watch(given: int, oldest: int) -> JsonObject:
    """The Status in a watch's ERROR event when its version is too old."""
    return status_body(410, "Expired", f"too old resource version: {given} ({oldest})")


def expired_version() -> ApiStatusError:
    """410: an exact version that is no longer kept."""
    return _error(410, "Expired", "The resourceVersion for the provided list is too old.")


def expired_continue(fresh_token: str) -> ApiStatusError:
    """410, as recorded: a page's version is gone; ``fresh_token`` continues without consistency."""
    message = (
        "The provided continue parameter is too old to display a consistent list result. You can start a new list "
        "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
        "results. Continuing with the provided token results in an inconsistent list - objects that were created, "
        "modified, or deleted between the time the first chunk was returned and now may show up in the list."
    )
    return ApiStatusError(410, status_body(410, "Expired", message, metadata={"continue": fresh_token}))
