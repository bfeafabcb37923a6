"""Creates, updates, patches and deletes: what the server does to an object before it is stored."""

import copy
import uuid
from collections.abc import Callable
from datetime import UTC, datetime

from kubesync.actors.scheduler import Clock
from kubesync_local.standins.apiserver.objects import status
from kubesync_local.standins.apiserver.objects.allocation import ServiceAllocations
from kubesync_local.standins.apiserver.objects.ingresses import managed, prepare_ingress
from kubesync_local.standins.apiserver.objects.resources import (
    ENDPOINTSLICES,
    EVENTS,
    INGRESSES,
    SERVICES,
    ResourceType,
    Target,
)
from kubesync_local.standins.apiserver.objects.schema import ShapeError, arrange
from kubesync_local.standins.apiserver.objects.services import prepare_service, prepare_status
from kubesync_local.standins.apiserver.objects.status import JsonObject
from kubesync_local.standins.apiserver.objects.store import Store, StoredObject
from kubesync_local.standins.apiserver.requests.patching import merge_patch, strategic_merge_patch

# Only the server sets them; values from clients are ignored.
_SERVER_FIELDS = ("uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp")
# The alphabet of names made from generateName (apimachinery's util/rand).
_SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


def random_uid() -> str:
    """A new uid, as the real server makes them."""
    return str(uuid.uuid4())


class Writer:
    """Writes to a store. Every method holds the store's lock; each raises ApiStatusError."""

    def __init__(
        self, store: Store, clock: Clock, allocations: ServiceAllocations, new_uid: Callable[[], str] = random_uid
    ) -> None:
        self._store = store
        self._clock = clock
        self._allocations = allocations
        self._new_uid = new_uid
        self._suffixes = 0

    def create(self, target: Target, body: JsonObject) -> StoredObject:
        """POST."""
        resource = target.resource
        with self._store.changed:
            given = self._arrange(resource, target.namespace, body)
            metadata = given["metadata"]
            if not metadata.get("name"):
                if not metadata.get("generateName"):
                    raise status.invalid(
                        resource,
                        "",
                        "metadata.name",
                        "FieldValueRequired",
                        "Required value: name or generateName is required",
                    )
                metadata["name"] = metadata["generateName"] + self._next_suffix()
            if metadata.get("resourceVersion"):
                raise status.bad_request("resourceVersion should not be set on objects to be created")
            if self._store.get(resource, target.namespace, metadata["name"]) is not None:
                raise status.already_exists(resource, metadata["name"])
            for field in _SERVER_FIELDS:
                metadata.pop(field, None)
            content = self._prepare(resource, given, None)
            metadata["uid"] = self._new_uid()
            metadata["creationTimestamp"] = self._now()
            if resource in (ENDPOINTSLICES, INGRESSES):
                metadata["generation"] = 1
            if resource is INGRESSES:
                managed(content, metadata["creationTimestamp"])
            return self._commit(resource, "ADDED", content)

    def _now(self) -> str:
        return datetime.fromtimestamp(self._clock.epoch_seconds(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def update(self, target: Target, body: JsonObject) -> tuple[StoredObject, bool]:
        """PUT, of an object or its status. Second value: whether it was created (an EndpointSlice never is)."""
        resource = target.resource
        with self._store.changed:
            given = self._arrange(resource, target.namespace, body)
            if given["metadata"].setdefault("name", target.name) != target.name:
                raise status.bad_request(
                    f"the name of the object ({given['metadata']['name']}) does not match the name on the URL ({target.name})"
                )
            before = self._store.get(resource, target.namespace, target.name)
            if before is None:
                creatable = resource is not ENDPOINTSLICES and not target.subresource
                if not creatable or given["metadata"].get("resourceVersion"):
                    raise status.not_found(resource, target.name)
                return self.create(target, given), True
            return self._replace(target, before, given), False

    def patch(self, target: Target, patch: JsonObject, *, strategic: bool = False) -> StoredObject:
        """PATCH with a JSON merge patch, or a strategic one."""
        with self._store.changed:
            before = self._present(target)
            try:
                merged = (strategic_merge_patch if strategic else merge_patch)(copy.deepcopy(before.item), patch)
            except (
                AttributeError,
                KeyError,
                TypeError,
            ) as error:  # a list whose elements are no objects, or have no key
                raise status.bad_request(f"the patch cannot be applied: {error}") from error
            if not isinstance(merged, dict):
                raise status.bad_request("the patch does not make an object")
            # A patch without a version applies to the current state, so it cannot be stale.
            return self._replace(target, before, self._arrange(target.resource, target.namespace, merged))

    def delete(self, target: Target, options: JsonObject) -> StoredObject:
        """DELETE; ``options`` may hold preconditions. Returns the last state, with the version of the deletion."""
        with self._store.changed:
            before = self._present(target)
            metadata = before.item["metadata"]
            preconditions = options.get("preconditions") or {}
            for field, label in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
                wanted = preconditions.get(field)
                if wanted and wanted != metadata[field]:
                    why = (
                        f"Precondition failed: {label} in precondition: {wanted}, "
                        f"{label} in object meta: {metadata[field]}"
                    )
                    raise status.conflict(target.resource, target.name, why)
            if target.resource is SERVICES:
                self._allocations.release(before.item)
            return self._commit(target.resource, "DELETED", copy.deepcopy(before.item))

    def _present(self, target: Target) -> StoredObject:
        before = self._store.get(target.resource, target.namespace, target.name)
        if before is None:
            raise status.not_found(target.resource, target.name)
        return before

    def _arrange(self, resource: ResourceType, namespace: str, body: JsonObject) -> JsonObject:
        expected = {"kind": resource.kind, "apiVersion": resource.api_version}
        for field, value in expected.items():
            if body.get(field, value) != value:
                raise status.bad_request(
                    f"the object provided is unrecognized (must be of type {resource.kind}): {field} is {body[field]}"
                )
        try:
            given = arrange(resource.plural, body)
        except ShapeError as error:
            raise status.bad_request(
                f"{resource.kind} in version {resource.version!r} cannot be handled: {error}"
            ) from error
        if given["metadata"].setdefault("namespace", namespace) != namespace:
            raise status.bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )
        return given

    def _replace(self, target: Target, before: StoredObject, given: JsonObject) -> StoredObject:
        resource, old, new = target.resource, before.item["metadata"], given["metadata"]
        if new.get("resourceVersion") not in (None, old["resourceVersion"]):
            raise status.conflict(resource, target.name)
        if new.get("uid") not in (None, old["uid"]):
            why = f"Precondition failed: UID in precondition: {new['uid']}, UID in object meta: {old['uid']}"
            raise status.conflict(resource, target.name, why)
        new.pop("managedFields", None)
        for field in (*_SERVER_FIELDS, "generateName"):
            new.pop(field, None)
            if field in old:
                new[field] = old[field]
        if target.subresource == "status":
            kept = copy.deepcopy(before.item)
            kept["metadata"].pop("managedFields", None)
            written = given.get("status") or {}
            given = {**kept, "status": prepare_status(written) if resource is SERVICES else written}
        else:
            given = self._prepare(resource, given, before.item)
        given = _finish(resource, given)
        kept_metadata = {key: value for key, value in old.items() if key != "managedFields"}
        if given == {**before.item, "metadata": kept_metadata}:
            return before  # An update that changes nothing takes no version and makes no event.
        if "generation" in old and _generation_moves(before.item, given):
            given["metadata"]["generation"] = old["generation"] + 1
        if resource is INGRESSES:
            managed(given, self._now(), old.get("managedFields", ()), target.subresource)
        return self._commit(resource, "MODIFIED", given)

    def _prepare(self, resource: ResourceType, given: JsonObject, before: JsonObject | None) -> JsonObject:
        if resource is SERVICES:
            return prepare_service(self._allocations, given, before)
        name = given["metadata"]["name"]
        if resource is EVENTS:
            return _prepare_event(resource, given)
        if resource is INGRESSES:
            return prepare_ingress(given, before)
        if resource is ENDPOINTSLICES:
            address_type = given.get("addressType", "")
            if address_type not in ("IPv4", "IPv6", "FQDN"):
                message = f'Unsupported value: "{address_type}": supported values: "FQDN", "IPv4", "IPv6"'
                raise status.invalid(resource, name, "addressType", "FieldValueNotSupported", message)
            if before is not None and before["addressType"] != address_type:
                message = f'Invalid value: "{address_type}": field is immutable'
                raise status.invalid(resource, name, "addressType", "FieldValueInvalid", message)
            # The documented maximum of endpoints in a slice.
            if len(given.get("endpoints", ())) > 1000:
                message = "Too many: must have at most 1000 items"
                raise status.invalid(resource, name, "endpoints", "FieldValueTooMany", message)
        for port in _ports(given):
            port.setdefault("protocol", "TCP")
            if resource is ENDPOINTSLICES:
                port.setdefault("name", "")
        return given

    def _commit(self, resource: ResourceType, change_type: str, content: JsonObject) -> StoredObject:
        finished = _finish(resource, content)
        finished["metadata"]["resourceVersion"] = str(self._store.next_version())
        # Once more, so that the version gets its place even if there was none.
        finished = _finish(resource, finished)
        stored = StoredObject.of(finished)
        self._store.commit(resource, change_type, stored)
        return stored

    def _next_suffix(self) -> str:
        """Five characters: different each time, the same in each run."""
        self._suffixes += 1
        number, suffix = self._suffixes * 7_919_393, ""
        for _ in range(5):
            number, digit = divmod(number, len(_SUFFIX_ALPHABET))
            suffix += _SUFFIX_ALPHABET[digit]
        return suffix


def _ports(item: JsonObject) -> list[JsonObject]:
    subsets = item.get("subsets", ())
    return [port for subset in subsets for port in subset.get("ports", ())] + list(item.get("ports") or ())


def _finish(resource: ResourceType, content: JsonObject) -> JsonObject:
    """The object in wire order, with the fields that are written even when they are empty."""
    finished = arrange(resource.plural, content)
    if resource in (SERVICES, INGRESSES):
        finished.setdefault("status", {}).setdefault("loadBalancer", {})
    if resource is ENDPOINTSLICES:
        finished.setdefault("endpoints", None)
        ports = finished.pop("ports", None)
        finished["ports"] = ports
    return finished


def _generation_moves(before: JsonObject, after: JsonObject) -> bool:
    """An EndpointSlice's generation grows when anything but its metadata, or its labels, change; an Ingress' with its spec."""

    def relevant(item: JsonObject) -> JsonObject:
        if "spec" in item:
            return {"spec": item["spec"]}
        return {**item, "metadata": item["metadata"].get("labels", {})}

    return relevant(before) != relevant(after)


def _prepare_event(resource: ResourceType, given: JsonObject) -> JsonObject:
    """Validation of a core Event (kubernetes/pkg/apis/core/validation/events.go), for the mistakes that a writer can make."""
    name, regards = given["metadata"]["name"], given.get("involvedObject", {})
    if regards.get("namespace", "") != given["metadata"].get("namespace", ""):
        message = f'Invalid value: "{regards.get("namespace", "")}": does not match event.namespace'
        raise status.invalid(resource, name, "involvedObject.namespace", "FieldValueInvalid", message)
    if len(given.get("message", "").encode()) > 1024:
        raise status.invalid(
            resource, name, "message", "FieldValueTooLong", "Too long: may not be more than 1024 bytes"
        )
    return given
