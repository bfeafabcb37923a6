"""What the template lets each function do, and stores that ask what a call needs."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, Final

from harness.wire.template import read_template, with_everything
from kubesync.aws.dynamodb.store import (
    AUDIT,
    CONTROL,
    STATE,
    UPSTREAMS,
    Action,
    Check,
    Delete,
    Item,
    Key,
    Put,
    Store,
    Update,
    Write,
)

TABLE_RESOURCES: Final = {
    "ControlTable.Arn": CONTROL,
    "StateTable.Arn": STATE,
    "UpstreamsTable.Arn": UPSTREAMS,
    "AuditTable.Arn": AUDIT,
    # The same secrets, named in another way; whatever else has no resources stands for its parameter.
    "arn:${AWS::Partition}:secretsmanager:${AWS::Region}:${AWS::AccountId}:secret:${SecretPrefix}*": "SecretArns",
}
# Named by their parameters in the template; a permission on one of them is written "service:Action on Parameter".
_ACTION_OF: Final[dict[type, str]] = {
    Put: "dynamodb:PutItem",
    Update: "dynamodb:UpdateItem",
    Delete: "dynamodb:DeleteItem",
    Check: "dynamodb:ConditionCheckItem",
}

type Permission = tuple[str, str]
"""An action, and what it is on: a table's logical name, or the parameter or resource that the template names."""


def statements(role: str) -> list[dict[str, Any]]:
    """All statements of a role's own policies and of the template's policies that it has, where every condition of the template holds."""
    resources = with_everything(read_template()["Resources"])
    properties = resources[role]["Properties"]
    documents = [policy["PolicyDocument"] for policy in properties["Policies"]]
    named = [each["Ref"] for each in properties.get("ManagedPolicyArns", ()) if "Ref" in each]
    documents += [resources[name]["Properties"]["PolicyDocument"] for name in named]
    return [statement for document in documents for statement in document["Statement"]]


@cache
def granted(role: str) -> frozenset[Permission]:
    """What a role may do."""
    return frozenset(
        (action, _name(resource))
        for statement in statements(role)
        if statement["Effect"] == "Allow"
        for action in _listed(statement["Action"])
        for resource in _listed(statement["Resource"])
    )


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _name(resource: Any) -> str:
    if isinstance(resource, str):
        return resource
    ((_, name),) = resource.items()
    return TABLE_RESOURCES.get(name, str(name))


def needed(action: Action) -> Permission:
    """What a write, alone or in a transaction, asks for."""
    return _ACTION_OF[type(action)], action.key.table


class PermissionStore:
    """A store that says what each call needs before it passes it on."""

    def __init__(self, store: Store, told: Callable[[set[Permission]], None]) -> None:
        self._store = store
        self._told = told

    def get(self, key: Key) -> Item | None:
        self._told({("dynamodb:GetItem", key.table)})
        return self._store.get(key)

    def batch_get(self, keys: Sequence[Key]) -> dict[Key, Item]:
        self._told({("dynamodb:BatchGetItem", key.table) for key in keys})
        return self._store.batch_get(keys)

    def query(self, table: str, partition: str, **options: Any) -> Iterator[Item]:
        self._told({("dynamodb:Query", table)})
        return self._store.query(table, partition, **options)

    def scan(self, table: str, limit: int | None = None) -> Iterator[Item]:
        self._told({("dynamodb:Scan", table)})
        return self._store.scan(table, limit)

    def write(self, action: Write) -> Item:
        self._told({needed(action)})
        return self._store.write(action)

    def transact(self, actions: Sequence[Action], token: str) -> None:
        self._told(set(map(needed, actions)))
        self._store.transact(actions, token)


def permitted(store: Store, *roles: str) -> Store:
    """A store that refuses what none of these roles may do, as DynamoDB would."""
    allowed = frozenset().union(*(granted(role) for role in roles))

    def check(permissions: set[Permission]) -> None:
        missing = sorted(permissions - allowed)
        assert not missing, f"template.yaml lets no function do this: {missing}"

    return PermissionStore(store, check)
