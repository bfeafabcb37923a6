"""Names that an object wants, whether it has something to publish there or not."""

from kubesync.aws.tables.control.clusters import ClusterConfig
from kubesync.domain.dns.annotations import read_annotations
from kubesync.domain.sources.registry import main_part
from kubesync.domain.state import KeyState
from kubesync_local.sources.registry import WORDS


def wanted_names(state: KeyState, config: ClusterConfig) -> frozenset[str]:
    """Those that annotations ask for, and those that the object gives by itself, as its kind says (``SourceWords.names``)."""
    main = main_part(state)
    if main is None or main.value is None:
        return frozenset()
    asked = read_annotations(getattr(main.value, "annotations", ()), config.annotation_prefixes)
    words = WORDS.get(state.key.kind)
    names = words.names(main.value, state.key, config) if words is not None else ()
    return frozenset((*asked.hostnames, *asked.internal_hostnames, *names))
