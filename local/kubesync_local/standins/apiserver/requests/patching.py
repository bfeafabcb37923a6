"""The two kinds of patches that are served: JSON merge patches (RFC 7386), and Kubernetes' strategic merge patches, which kubectl sends.

A strategic merge patch merges some lists by a key, and has directives:

directive                            what it does
---------                            ------------
``$patch: replace``                  this object, or the list that an element with it is in, replaces what is there
``$patch: delete``                   removes the element of a list with its key
``$retainKeys: [...]``               removes all other fields of an object
``$setElementOrder/<list>: [...]``   the order of the merged list; elements that it does not name come last
``$deleteFromPrimitiveList/<list>``  removes values from a list of values

Source: kubernetes/apimachinery/pkg/util/strategicpatch, and the patch strategies of kubernetes/api/core/v1/types.go.
"""

from typing import Any, Final

from kubesync_local.standins.apiserver.objects.status import JsonObject

_DIRECTIVE: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_ORDER: Final = "$setElementOrder/"
_WITHOUT: Final = "$deleteFromPrimitiveList/"
# Lists that are merged; "" stands for a list of values. All others are replaced.
_MERGED_BY: Final = {
    ("spec", "ports"): "port",
    ("metadata", "ownerReferences"): "uid",
    ("metadata", "finalizers"): "",
    ("status", "conditions"): "type",
}


def merge_patch(value: Any, patch: Any) -> Any:
    """RFC 7386: null removes, objects merge, everything else replaces."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(value) if isinstance(value, dict) else {}
    for name, inner in patch.items():
        if inner is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), inner)
    return merged


def strategic_merge_patch(value: Any, patch: Any, path: tuple[str, ...] = ()) -> Any:
    """See the module. ``path``: the fields that lead to ``value``."""
    if not isinstance(patch, dict):
        return patch
    if patch.get(_DIRECTIVE) == "delete":
        return {}
    replaces = patch.get(_DIRECTIVE) == "replace" or not isinstance(value, dict)
    merged = {} if replaces else dict(value)
    if _RETAIN in patch:
        merged = {name: inner for name, inner in merged.items() if name in patch[_RETAIN]}
    for name, inner in patch.items():
        place = (*path, name)
        if name.startswith(_WITHOUT):
            field = name.removeprefix(_WITHOUT)
            merged[field] = [each for each in merged.get(field, ()) if each not in inner]
        elif name.startswith("$"):
            continue
        elif inner is None:
            merged.pop(name, None)
        elif isinstance(inner, list) and place in _MERGED_BY:
            merged[name] = _merged_list(merged.get(name) or [], inner, _MERGED_BY[place], place)
        else:
            merged[name] = strategic_merge_patch(merged.get(name), inner, place)
    for name, order in patch.items():
        field = name.removeprefix(_ORDER)
        if name.startswith(_ORDER) and field in merged:
            merged[field] = _ordered(merged[field], order, _MERGED_BY.get((*path, field), ""))
    return merged


def _merged_list(there: list[Any], patch: list[Any], key: str, path: tuple[str, ...]) -> list[Any]:
    if not key:
        return [*there, *(each for each in patch if each not in there)]
    if any(each.get(_DIRECTIVE) == "replace" for each in patch):
        return [each for each in patch if _DIRECTIVE not in each]
    merged: dict[Any, JsonObject] = {each.get(key): each for each in there}
    for each in patch:
        if each.get(_DIRECTIVE) == "delete":
            merged.pop(each.get(key), None)
        else:
            merged[each.get(key)] = strategic_merge_patch(merged.get(each.get(key)), each, path)
    return list(merged.values())


def _ordered(there: list[Any], order: list[Any], key: str) -> list[Any]:
    places = {each[key] if key else each: place for place, each in enumerate(order)}
    return sorted(there, key=lambda each: places.get(each.get(key) if key else each, len(places)))
