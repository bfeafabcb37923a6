"""All resources that this release reads, as the API writes them. A further one is a file beside this one, and a word here."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kubesync.domain.objects import Resource
from kubesync.kubernetes.wire import ingresses, services
from kubesync.kubernetes.wire.port import WireSource

_WIRE: Final[dict[Resource, WireSource]] = {}
WIRE: Final[Mapping[Resource, WireSource]] = MappingProxyType(_WIRE)


def register(source: WireSource) -> None:
    """Make a resource readable."""
    _WIRE[source.resource] = source


for each in (*services.SOURCES, *ingresses.SOURCES):
    register(each)
