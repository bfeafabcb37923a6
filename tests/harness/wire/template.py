"""Reads the SAM template: CloudFormation's short forms, conditions taken as said."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).resolve().parents[3]


class TemplateLoader(yaml.SafeLoader):
    """YAML with CloudFormation's short forms: ``!Sub x`` becomes ``{"Fn::Sub": "x"}``."""


def _short_form(loader: TemplateLoader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    name = suffix if suffix in {"Ref", "Condition"} else f"Fn::{suffix}"
    if isinstance(node, yaml.ScalarNode):
        return {name: loader.construct_scalar(node)}
    if isinstance(node, yaml.SequenceNode):
        return {name: loader.construct_sequence(node, deep=True)}
    assert isinstance(node, yaml.MappingNode)
    return {name: loader.construct_mapping(node, deep=True)}


TemplateLoader.add_multi_constructor("!", _short_form)


@cache
def read_template() -> dict[str, Any]:
    """template.yaml as written; read once, so nobody may change it."""
    loaded = yaml.load((ROOT / "template.yaml").read_text(), TemplateLoader)
    assert isinstance(loaded, dict)
    return loaded


def resources(template: dict[str, Any], kind: str, shards: int = 1) -> dict[str, dict[str, Any]]:
    """Resources of a type by logical id, as they are with so many shards."""
    return {
        name: entry
        for name, entry in template["Resources"].items()
        if entry["Type"] == kind and shard_of(name) < shards
    }


def shard_of(logical_id: str) -> int:
    """The shard that a resource belongs to; 0 also for those that all shards share."""
    found = re.search(r"Shard(\d+)(Alarm)?$", logical_id)
    return int(found[1]) if found else 0


def with_everything(value: Any) -> Any:
    """The value where every condition holds: ``Fn::If`` gives its first branch."""
    if isinstance(value, dict):
        if value.keys() == {"Fn::If"}:
            return with_everything(value["Fn::If"][1])
        return {name: with_everything(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [with_everything(inner) for inner in value]
    return value


def resolved(value: Any, parameters: Mapping[str, Any], conditions: Mapping[str, Any] | None = None) -> Any:
    """The value as CloudFormation makes it with these parameters; lists for those that are lists. Others are left as they are.

    Args:
        conditions: those of another template than ours.
    """
    conditions = read_template()["Conditions"] if conditions is None else conditions

    def of(value: Any) -> Any:
        match value:
            case {"Ref": str(name)} if name in parameters:
                return parameters[name]
            case {"Condition": str(name)}:
                return of(conditions[name])
            case {"Fn::Not": [inner]}:
                return not of(inner)
            case {"Fn::Or": list(inner)}:
                return any(map(of, inner))
            case {"Fn::And": list(inner)}:
                return all(map(of, inner))
            case {"Fn::Equals": [one, other]}:
                return of(one) == of(other)
            case {"Fn::If": [str(condition), then, otherwise]}:
                return of(then) if of(conditions[condition]) else of(otherwise)
            case {"Fn::Join": [str(between), parts]}:
                return between.join(of(parts))
            case {"Fn::Split": [str(between), text]}:
                return of(text).split(between)
            case {"Fn::Sub": str(text)} if any(f"${{{name}}}" in text for name in parameters):
                return of({"Fn::Sub": [text, {}]})
            case {"Fn::Sub": [str(text), dict(own)]}:
                for name, inner in {**parameters, **{name: of(inner) for name, inner in own.items()}}.items():
                    text = text.replace(f"${{{name}}}", str(inner))
                return text
            case dict():
                found = {name: of(inner) for name, inner in value.items()}
                return {name: inner for name, inner in found.items() if inner != {"Ref": "AWS::NoValue"}}
            case list():
                return [inner for inner in map(of, value) if inner != {"Ref": "AWS::NoValue"}]
        return value

    return of(value)
