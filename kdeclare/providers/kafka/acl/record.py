"""The ownership record of an Acl: the bindings that kdeclare has applied and still manages.

A state can contain many thousands of bindings. For speed, they are converted from and to JSON without a
validation library.
"""

from collections.abc import Collection, Mapping
from dataclasses import field
from typing import Self

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonObject, JsonValue, as_bool, as_object, as_text, as_texts
from kdeclare.core.resources.owned_record import CodedRecord, OwnedRecord, narrow_record
from kdeclare.providers.kafka.acl.binding import Binding, parse_binding, sort_bindings

_FIELDS = frozenset({"bindings", "roles", "labels", "preventDestroy"})


@dataclass(frozen=True, slots=True)
class AclRecord(CodedRecord):
    """The owned bindings of one Acl.

    labels: the labels of the manifest. Policies use these labels if the resource becomes an orphan.
    roles: the manifest role that each binding was expanded from. Plans show the roles of the bindings that
        they delete. Bindings without a role are omitted.
    """

    bindings: tuple[Binding, ...]
    labels: Mapping[str, str] = field(default_factory=dict)
    preventDestroy: bool = False  # noqa: N815  the name in files
    roles: Mapping[Binding, str] = field(default_factory=dict)

    @classmethod
    def from_json(cls, json: JsonObject) -> Self:
        """See `CodedRecord`."""
        unknown = next((name for name in json if name not in _FIELDS), None)
        if unknown is not None:
            raise ValueError(f"{unknown}: unknown field")
        labels = as_object(json.get("labels", {}))
        bindings = tuple(map(parse_binding, as_texts(json.get("bindings", ()))))
        roles = as_texts(json.get("roles", ()))
        if roles and len(roles) != len(bindings):
            raise ValueError(f"roles: expected {len(bindings)} strings, not {len(roles)}")
        return cls(
            bindings,
            {name: as_text(value) for name, value in labels.items()},
            as_bool(json.get("preventDestroy", False)),
            # In files, the roles are in the order of the bindings, so that a file contains each binding only
            # once.
            {b: role for b, role in zip(bindings, roles, strict=False) if role},
        )

    def to_json(self) -> JsonObject:
        """See `CodedRecord`."""
        json: dict[str, JsonValue] = {"bindings": [str(binding) for binding in self.bindings]}
        json |= {"roles": [self.roles.get(binding, "") for binding in self.bindings]} if self.roles else {}
        json |= {"labels": dict(self.labels)} if self.labels else {}
        return json | ({"preventDestroy": True} if self.preventDestroy else {})


def get_owned_bindings(owned: OwnedRecord | None) -> tuple[Binding, ...]:
    """Return the bindings of a record, or no bindings if there is no record."""
    record = narrow_record(owned, AclRecord)
    return record.bindings if record is not None else ()


def get_owned_roles(owned: OwnedRecord | None) -> Mapping[Binding, str]:
    """Return the roles in a record, or no roles if there is no record."""
    record = narrow_record(owned, AclRecord)
    return record.roles if record is not None else {}


def merge_bindings(
    before: OwnedRecord | None,
    after: OwnedRecord | None,
    created: Collection[Binding],
    deleted: Collection[Binding],
) -> AclRecord | None:
    """Return the ownership record after a run that made only a part of the planned changes.

    created, deleted: the bindings that the run created and deleted.

    Existing bindings that the plan was to adopt are not included. The next apply adopts them.
    """
    remaining = {*get_owned_bindings(before), *created}.difference(deleted)
    newer = narrow_record(after, AclRecord) or narrow_record(before, AclRecord)
    if newer is None or (after is None and not remaining):
        return None
    roles = {**get_owned_roles(before), **get_owned_roles(after)}
    return AclRecord(
        sort_bindings(remaining),
        newer.labels,
        newer.preventDestroy,
        {b: role for b, role in roles.items() if b in remaining},
    )
