"""The ``spec`` of an Acl manifest, and the declared bindings as the body of a resource."""

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonObject, JsonValue, as_bool, as_object, as_text, as_texts
from kdeclare.core.resources.declared_absence import ResourceState
from kdeclare.core.resources.raw_text import RawText
from kdeclare.providers.kafka.acl.binding import Binding, parse_binding

_CLOSED = ConfigDict(extra="forbid", frozen=True, defer_build=True)

Names = Annotated[list[str], RawText()]
Name = Annotated[str | None, RawText()]
Operation = Literal[
    "ALL",
    "ALTER",
    "ALTER_CONFIGS",
    "CLUSTER_ACTION",
    "CREATE",
    "CREATE_TOKENS",
    "DELETE",
    "DESCRIBE",
    "DESCRIBE_CONFIGS",
    "DESCRIBE_TOKENS",
    "IDEMPOTENT_WRITE",
    "READ",
    "TWO_PHASE_COMMIT",
    "WRITE",
]
_NAME_FORMS = "NAME stands for one name, PREFIX* for all names that start with PREFIX, and '*' for all names."


class TopicsAndGroups(BaseModel):
    """The topics and groups of a role."""

    model_config = _CLOSED
    topics: Annotated[Names, Field(description=f"Topics. {_NAME_FORMS}")] = []
    groups: Annotated[Names, Field(description=f"Groups. {_NAME_FORMS}")] = []


class BindingSpec(BaseModel):
    """The operations that the manifest allows or denies on one resource."""

    model_config = _CLOSED
    topic: Annotated[Name, Field(description=f"A topic. {_NAME_FORMS}")] = None
    group: Annotated[Name, Field(description=f"A group. {_NAME_FORMS}")] = None
    cluster: Annotated[Literal[True] | None, Field(description="The cluster itself.")] = None
    transactionalId: Annotated[  # noqa: N815
        Name, Field(description=f"A transactional id. {_NAME_FORMS}")
    ] = None
    delegationToken: Annotated[  # noqa: N815
        Name, Field(description=f"The id of a delegation token. {_NAME_FORMS}")
    ] = None
    user: Annotated[
        Name,
        Field(description="A user whose tokens may be created or described, such as User:alice, or '*'."),
    ] = None
    pattern: Annotated[
        Literal["literal", "prefixed"] | None,
        Field(
            description="How to interpret the name: as a single name (literal) or as a prefix (prefixed). If "
            "omitted, a star at the end means a prefix."
        ),
    ] = None
    allow: Annotated[list[Operation], Field(description="The operations to allow.")] = []
    deny: Annotated[
        list[Operation],
        Field(description="The operations to deny. Denials take precedence over all grants."),
    ] = []
    hosts: Annotated[
        Names | None, Field(description="The hosts of this entry, instead of the hosts of the manifest.")
    ] = None


class AclLifecycle(BaseModel):
    """The ``lifecycle`` of an Acl: whether kdeclare deletes its bindings."""

    refused_options: ClassVar[Mapping[str, str]] = {
        "ignoreChanges": "Kafka creates and deletes bindings, but never changes them. Bindings that no "
        "manifest declares stay as they are, unless the manifest sets 'unmanagedBindings: remove'."
    }
    model_config = _CLOSED
    preventDestroy: Annotated[  # noqa: N815
        StrictBool,
        Field(
            description="Never delete the resource with all of its bindings, not even with --allow-deletes."
        ),
    ] = False
    adopt: Annotated[
        StrictBool,
        Field(description="With state: absent, also delete declared bindings that were never applied."),
    ] = False
    state: ResourceState = "present"


class AclSpec(BaseModel):
    """The ``spec`` of an Acl manifest."""

    model_config = _CLOSED
    principal: Annotated[
        Name, Field(description="The principal, with its type, such as User:checkout. Case matters.")
    ] = None
    principals: Annotated[
        Names | None,
        Field(description="Several principals with the same permissions, instead of 'principal'."),
    ] = None
    hosts: Annotated[
        Names,
        Field(
            description="The IP addresses that the principals connect from; '*' (the default) is any host."
        ),
    ] = ["*"]
    produce: Annotated[Names, Field(description=f"Topics to write to. {_NAME_FORMS}")] = []
    consume: Annotated[
        TopicsAndGroups, Field(description="Topics to read from, and the consumer groups that read them.")
    ] = TopicsAndGroups()
    transactions: Annotated[
        Names, Field(description=f"Transactional ids for transactions. {_NAME_FORMS}")
    ] = []
    streams: Annotated[
        Names,
        Field(
            description="Application ids of Kafka Streams applications. The role covers the group, internal "
            "topics and transactional ids of each application."
        ),
    ] = []
    observe: Annotated[
        TopicsAndGroups, Field(description="Topics and groups to describe without reading records.")
    ] = TopicsAndGroups()
    bindings: Annotated[
        list[BindingSpec],
        Field(description="Any other permissions and denials. Each entry applies to one resource."),
    ] = []
    unmanagedBindings: Annotated[  # noqa: N815
        Literal["keep", "remove"],
        Field(
            description="How to treat bindings of these principals that no manifest of the project declares: "
            "keep (the default) or remove."
        ),
    ] = "keep"
    lifecycle: Annotated[
        AclLifecycle, Field(description="Whether to prevent the deletion of the bindings, or to delete them.")
    ] = AclLifecycle()


@dataclass(frozen=True, slots=True)
class AclBody:
    """The declared bindings of one or more principals.

    bindings: the declared bindings, sorted, each with its role. The role is empty if the binding is declared
        in the field ``bindings``.
    absent: bindings that must not exist. Only ad hoc commands use this field.
    is_partial: whether the body is only a part of a resource, as in ad hoc commands and in audits.
    adopt: whether a deletion includes declared bindings that kdeclare has never applied. Only deletions use
        this field: kdeclare adopts existing bindings without it, because adoption does not change them.
    """

    principals: tuple[str, ...]
    bindings: Mapping[Binding, str] = field(default_factory=dict)
    remove_unmanaged: bool = False
    prevent_destroy: bool = False
    absent: tuple[Binding, ...] = ()
    is_partial: bool = False
    adopt: bool = False


def dump_acl(body: AclBody) -> JsonObject:
    """Return the body as plain data, without default values."""
    document: dict[str, JsonValue] = {
        "principals": list(body.principals),
        "bindings": {str(binding): role for binding, role in body.bindings.items()},
    }
    document |= {"removeUnmanaged": True} if body.remove_unmanaged else {}
    document |= {"preventDestroy": True} if body.prevent_destroy else {}
    document |= {"adopt": True} if body.adopt else {}
    return document | ({"partial": True} if body.is_partial else {})


def bind_acl(json: JsonObject) -> AclBody:
    """Convert the result of `dump_acl` back to a body."""
    return AclBody(
        as_texts(json["principals"]),
        {parse_binding(text): as_text(role) for text, role in as_object(json["bindings"]).items()},
        as_bool(json.get("removeUnmanaged", False)),
        as_bool(json.get("preventDestroy", False)),
        is_partial=as_bool(json.get("partial", False)),
        adopt=as_bool(json.get("adopt", False)),
    )
