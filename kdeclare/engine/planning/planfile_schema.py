"""The format of plan files, as types that pydantic validates.

Unknown fields are refused, because ignoring them could change the effect of the plan. The types are typed
dicts, because pydantic models take four times as long to validate thousands of operations.
"""

from functools import cache
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Literal, NotRequired

from pydantic import ConfigDict, Field, PlainSerializer, TypeAdapter, with_config
from typing_extensions import TypedDict

from kdeclare.core.documents import ResourceText
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.plans.plan import FORMAT_VERSION, Verdict
from kdeclare.engine.planning.plan_document import build_verdict_document

CLOSED = ConfigDict(extra="forbid", strict=True)

RiskText = Literal["safe", "disruptive", "destructive", "irreversible"]
ReasonText = Literal[
    "declared",
    "changed",
    "drifted",
    "missing",
    "orphaned",
    "absent",
    "forgotten",
    "rollback",
    "asked",
    "adopt",
    "replaced",
    "recreated",
]


@with_config(CLOSED)
class PlaceDocument(TypedDict):
    """A position in a file. Lines and columns are numbered from 1."""

    file: str
    line: int
    column: int


@with_config(CLOSED)
class ClusterDocument(TypedDict):
    """The cluster that the plan is for."""

    id: str
    name: str


@with_config(CLOSED)
class BaseDocument(TypedDict):
    """The state that the plan was made for. Apply refuses the plan if the lineage has changed."""

    lineage: Annotated[
        str | None, Field(description="The unique id of the state, or null if no state existed.")
    ]
    serial: Annotated[int, Field(description="The serial of the state, which increases with each write.")]


@with_config(CLOSED)
class SummaryDocument(TypedDict):
    """Numbers of resources. ``reassign`` counts partitions, and ``unmanaged_configs`` counts config keys.

    A replaced resource is counted in both ``create`` and ``delete``.
    """

    create: int
    update: int
    delete: int
    forget: int
    unchanged: int
    orphaned: int
    blocked: int
    unmanaged: int
    reassign: int
    unmanaged_configs: int


@with_config(CLOSED)
class FieldDocument(TypedDict):
    """The change of one field of a resource."""

    path: str
    op: Literal["SET", "DELETE", "APPEND", "SUBTRACT", "change"]
    before: Annotated[JsonValue, Field(description="The whole value before the change.")]
    after: Annotated[JsonValue, Field(description="The whole value after the change.")]
    value: Annotated[JsonValue, Field(description="The list elements that APPEND adds or SUBTRACT removes.")]
    risk: RiskText
    cause: Annotated[str, Field(description="Why the change has this risk. Empty if the change is safe.")]
    reason: ReasonText


@with_config(CLOSED)
class ChangeDocument(TypedDict):
    """A resource that needs a change, or an orphan. The action of an orphan is ``no-op``."""

    id: ResourceText
    action: Literal["create", "update", "delete", "replace", "forget", "no-op"]
    reason: ReasonText
    risk: Annotated[RiskText, Field(description="The highest risk in ``risks``.")]
    risks: list[RiskText]
    fields: list[FieldDocument]
    source: PlaceDocument | None
    blocked: NotRequired[Annotated[str, Field(description="The code of the error that blocks the change.")]]
    owner: NotRequired[
        Annotated[str, Field(description="The owner of the resource, taken from its label ``team``.")]
    ]
    description: NotRequired[
        Annotated[str, Field(description="What the resource is for, according to its manifest.")]
    ]


@with_config(CLOSED)
class InverseDocument(TypedDict):
    """The operation that undoes another operation."""

    verb: str
    args: dict[str, JsonValue]


@with_config(CLOSED)
class OperationDocument(TypedDict):
    """One step of apply.

    The step has either an ``inverse`` or, in ``irreversible``, the reason why there is no inverse.
    """

    id: str
    verb: str
    resource: ResourceText
    needs: Annotated[
        list[str], Field(description="The ids of operations that must succeed before this operation starts.")
    ]
    follows: NotRequired[
        Annotated[
            list[str],
            Field(
                description="The ids of operations that must end, successfully or not, before this operation "
                "starts."
            ),
        ]
    ]
    reasons: NotRequired[
        Annotated[
            dict[str, str],
            Field(
                description="Why each operation listed in 'needs' or 'follows' must run first, by "
                "operation id."
            ),
        ]
    ]
    args: dict[str, JsonValue]
    expect: Annotated[
        dict[str, JsonValue],
        Field(
            description="The live values at planning time of everything that the operation changes. If they "
            "differ when the plan is applied, the plan is stale."
        ),
    ]
    inverse: NotRequired[InverseDocument]
    irreversible: NotRequired[str]


@with_config(CLOSED)
class BlockedOperationDocument(TypedDict):
    """An operation of a blocked change. Apply never executes it."""

    id: str
    verb: str
    resource: ResourceText
    args: dict[str, JsonValue]
    expect: Annotated[
        dict[str, JsonValue],
        Field(description="The live values of everything that the operation would change."),
    ]


@with_config(CLOSED)
class OwnershipDocument(TypedDict):
    """A change to the ownership record of a resource. Null means that kdeclare does not own the resource."""

    id: ResourceText
    before: JsonValue
    after: JsonValue


@with_config(CLOSED)
class VerdictDocument(TypedDict):
    """The verdict of a policy about one change."""

    policy: str
    resource: str
    outcome: Literal["allow", "warn", "deny"]
    message: str
    topic: NotRequired[
        Annotated[str, Field(description="The evaluated topic, if the resource is not the topic itself.")]
    ]
    override: NotRequired[
        Annotated[
            str, Field(description="The reason for overriding the policy. If it is set, the outcome is warn.")
        ]
    ]


SerializedVerdict = Annotated[Verdict, PlainSerializer(build_verdict_document, return_type=VerdictDocument)]


@with_config(CLOSED)
class DiagnosticDocument(TypedDict):
    """An error, a warning or a note about the plan."""

    severity: Literal["error", "denied", "warning", "info"]
    code: str
    summary: str
    detail: str
    hint: str
    place: PlaceDocument | None
    resource: str | None
    subject: str | None


@with_config(CLOSED)
class SignatureDocument(TypedDict):
    """The signature of a plan, which covers ``plan_id``, ``created_at`` and ``signed_at``."""

    format: Annotated[Literal["sshsig"], Field(description="The format of ``ssh-keygen -Y sign``.")]
    key: Annotated[
        str, Field(pattern="^SHA256:[A-Za-z0-9+/]{43}$", description="The fingerprint of the public key.")
    ]
    signed_at: str
    value: Annotated[
        str,
        Field(pattern="^[A-Za-z0-9+/]+=*$", description="The signature and the public key, in base64."),
    ]


@with_config(CLOSED)
class ObservationDocument(TypedDict):
    """The impact of a change on records or clients, for reviewers.

    Apply does not compare the impact with the live state.
    """

    resource: ResourceText
    path: Annotated[
        str | None,
        Field(description="The path of the changed field, or null if the whole resource is meant."),
    ]
    code: Annotated[str, Field(description="The type of the effect, such as deletable-records.")]
    level: Literal["loss", "effect", "unknown", "info"]
    text: Annotated[str, Field(description="The effect as a sentence.")]
    figures: Annotated[
        dict[str, JsonValue],
        Field(description="The numbers in the sentence and their bounds, by name. Null if unknown."),
    ]


@with_config(CLOSED)
class UnmanagedObjectDocument(TypedDict):
    """A live object that the project neither declares nor owns, or a group of such objects."""

    kind: Annotated[str, Field(description="The kind that could declare the object.")]
    name: str
    count: Annotated[
        int,
        Field(
            description="The number of objects. It is more than 1 only if the entry stands for several "
            "objects."
        ),
    ]


@with_config(CLOSED)
class UnmanagedDocument(TypedDict):
    """The live objects that the project neither declares nor owns."""

    objects: list[UnmanagedObjectDocument]
    unread: Annotated[
        list[str],
        Field(description="What could not be read. If there is an entry, 'objects' may be incomplete."),
    ]


@with_config(CLOSED)
class PlanDocument(TypedDict):
    """A kdeclare plan: the changes, the operations that make them, the verdicts, and the diagnostics."""

    format_version: Literal["2.0"]
    plan_id: Annotated[
        str,
        Field(
            pattern="^[0-9a-f]{64}$",
            description="The SHA-256 hash of the plan as canonical JSON, without the fields plan_id, "
            "created_at, signature, observations and unmanaged.",
        ),
    ]
    created_at: str | None
    kdeclare_version: str
    project: str
    env: str
    cluster: ClusterDocument
    base: BaseDocument
    summary: SummaryDocument
    changes: list[ChangeDocument]
    operations: list[OperationDocument]
    ownership: list[OwnershipDocument]
    verdicts: list[VerdictDocument]
    diagnostics: list[DiagnosticDocument]
    unmanaged_configs: dict[str, list[str]]
    undoes: Annotated[str | None, Field(description="The id of the run that the plan rolls back, or null.")]
    max_deletes: Annotated[
        str | None,
        Field(
            pattern="^([0-9]{1,9}|(100|[0-9]{1,2})%)$",
            description="The value of --max-deletes, which limits the deletions per kind. Null for the "
            "default limit.",
        ),
    ]
    labels: NotRequired[
        Annotated[
            dict[str, dict[str, str]],
            Field(
                description="Topic labels that are not in the state, by topic. Apply needs them to evaluate "
                "policies again."
            ),
        ]
    ]
    endpoints: NotRequired[
        Annotated[
            dict[str, str],
            Field(
                description="The ids of the named endpoints that the plan is for, by name, such as "
                "connect/eu. The id is empty if the system has no id."
            ),
        ]
    ]
    blocked_operations: NotRequired[
        Annotated[
            list[BlockedOperationDocument],
            Field(
                description="The operations of blocked changes, for reviewers. Only some kinds list their "
                "operations here."
            ),
        ]
    ]
    racks: NotRequired[
        Annotated[
            dict[Annotated[str, Field(pattern="^(0|[1-9][0-9]{0,9})$")], str],
            Field(description="The rack of each broker, by broker id. Present if the plan places replicas."),
        ]
    ]
    observations: NotRequired[
        Annotated[
            list[ObservationDocument],
            Field(
                description="The expected impact of the changes on records and clients, as of the time when "
                "the plan was made. The plan's id does not depend on it."
            ),
        ]
    ]
    unmanaged: NotRequired[
        Annotated[
            UnmanagedDocument,
            Field(description="Present with --list-unmanaged. The plan's id does not depend on it."),
        ]
    ]
    signature: NotRequired[
        Annotated[
            SignatureDocument,
            Field(description="The signature of the plan. The plan's id does not depend on it."),
        ]
    ]


@cache
def _get_adapter() -> TypeAdapter[PlanDocument]:
    return TypeAdapter(PlanDocument)


def validate_document(raw: JsonValue) -> PlanDocument:
    """Validate ``raw`` as a plan document. Raises ValueError with the reason if it is invalid."""
    document = _get_adapter().validate_python(raw)
    _validate_operations(document["operations"])
    return document


def _validate_operations(operations: list[OperationDocument]) -> None:
    operation_ids = {operation["id"] for operation in operations}
    if len(operation_ids) != len(operations):
        raise ValueError("two operations have the same id")
    for operation in operations:
        if ("inverse" in operation) == ("irreversible" in operation):
            raise ValueError(f"operation '{operation['id']}' must have either 'inverse' or 'irreversible'")
        for predecessor in _list_predecessors(operation):
            if predecessor not in operation_ids:
                raise ValueError(
                    f"operation '{operation['id']}' depends on '{predecessor}', which is not in the plan"
                )
    try:
        TopologicalSorter({o["id"]: _list_predecessors(o) for o in operations}).prepare()
    except CycleError:
        raise ValueError("the operations depend on each other in a cycle")


def _list_predecessors(operation: OperationDocument) -> list[str]:
    return [*operation["needs"], *operation.get("follows", ())]


def build_plan_schema() -> dict[str, JsonValue]:
    """Return the JSON Schema (2020-12) of a plan document. ``docs/schemas/plan.schema.json`` contains it."""
    schema = _get_adapter().json_schema()
    schema["$defs"]["OperationDocument"]["oneOf"] = [
        {"required": ["inverse"]},
        {"required": ["irreversible"]},
    ]
    schema["title"] = f"kdeclare plan, format {FORMAT_VERSION}"
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | schema
