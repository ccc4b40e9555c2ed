"""What kdeclare has to know of feature flags: two kinds, and what is left to clean up."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from kdeclare.core.cleanup import Cleanup, CleanupRequest
from kdeclare.core.collector import Collector, Selections
from kdeclare.core.completion import Completion
from kdeclare.core.connecting import ConnectionType
from kdeclare.core.faults import Explanation, Fault, FaultCause, Outcome
from kdeclare.core.ids import ResourceId
from kdeclare.core.jsontypes import Json
from kdeclare.core.object_codec import ObjectCodec
from kdeclare.core.objects import Fields, ObjectBody, ObjectKind, ObjectSpec, ObjectWrite, get_fields
from kdeclare.core.operations import Operation
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.provider import Provider
from kdeclare.core.run import Status
from kdeclare.core.secrets import SecretText
from kdeclare.core.state import PendingCleanup
from kdeclare_flags.service import Contents, FlagService

_OLD_TOKENS = "flags.old-tokens"
_CAUSES = {"EXISTS": FaultCause.EXISTS, "MISSING": FaultCause.GONE_ALREADY}


class FlagSettings(BaseModel):
    """What an environment says of the service: its file, relative to the project."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    file: str


@dataclass(frozen=True, slots=True)
class Everything:
    """Selects all that the service has: it answers in one piece."""

    def merge(self, others: Sequence["Everything"]) -> "Everything":
        """See `core.collector.Selection`."""
        return self


class FlagSpec(ObjectSpec):
    """``spec`` of a Flag: it is on for a percentage of users."""

    description: str | None = None
    rollout: Annotated[int, Field(ge=0, le=100)] = 100


class FlagClientSpec(ObjectSpec):
    """``spec`` of a FlagClient: a program that reads flags, and its token for that."""

    flags: list[str]
    token: SecretText


class Rollout(Completion):
    """A flag reaches its clients some time after the request was answered."""

    def is_ongoing(self, op: Operation, live: LiveState) -> bool:
        """See `core.completion.Completion`."""
        return op.resource.name in live.get(Contents).rolling


class FlagObjectKind(ObjectKind):
    """What both kinds have in common: they are objects of the service."""

    def select(self, name: str, body: ObjectBody | None, owned: Json) -> Selections:
        """See `core.kind.Kind`."""
        return (Everything(),)

    def read(self, live: LiveState) -> Mapping[str, Fields]:
        """See `core.objects.ObjectKind`."""
        contents = live.find(Contents)
        objects = contents.objects if contents else {}
        return {id_.name: fields for id_, fields in objects.items() if id_.kind == self.name}

    def write(
        self, connections: Connections, writes: Sequence[ObjectWrite], *, validate_only: bool
    ) -> Sequence[Outcome]:
        """See `core.objects.ObjectKind`."""
        return connections.get(FlagService).write(writes, dry_run=validate_only)

    def explain(self, op: Operation, fault: Fault) -> Explanation:
        """See `core.objects.ObjectKind`."""
        return Explanation(_CAUSES.get(fault.error, FaultCause.OTHER))


class FlagClientKind(FlagObjectKind):
    """A client's earlier token stays valid for a while, and is revoked after that."""

    def update_cleanup(self, op: Operation, status: Status, before: PendingCleanup) -> PendingCleanup:
        """See `core.objects.ObjectKind`."""
        names = {*before.get(_OLD_TOKENS, ())}
        if status is Status.DONE and op.verb == self.update.name and "token" in get_fields(op):
            names.add(op.resource.name)
        elif status is Status.DONE and op.verb == self.tidy.name:
            names.discard(op.resource.name)
        return _with_old_tokens(before, names)


FLAG = FlagObjectKind("Flag", FlagSpec, completion=Rollout())
CLIENT = FlagClientKind("FlagClient", FlagClientSpec, references={"flags": "Flag"})


CONTENTS = Collector(
    Everything,
    read=lambda connections, _: connections.get(FlagService).read(),
    find_id=lambda live: contents.id if (contents := live.find(Contents)) else None,
    codec=ObjectCodec(
        "flags",
        (FLAG, CLIENT),
        read=lambda connections: connections.get(FlagService).read(),
        restore=lambda objects: Contents(
            "", {ResourceId(*key): f for key, f in objects.items()}, frozenset()
        ),
    ),
)


def find_cleanup(request: CleanupRequest) -> Cleanup | None:
    """Revoke the old tokens that nobody can use any longer. Raises Fault."""
    names = request.pending.get(_OLD_TOKENS)
    if not names or request.connections.find(FlagService) is None:
        return None
    live = LiveState(request.connections.get(FlagService).read())
    states = {name: fields["oldToken"] for name, fields in CLIENT.read(live).items() if "oldToken" in fields}
    in_use = tuple(name for name in names if states.get(name) == "valid")
    over = [name for name in names if states.get(name) == "expired"]
    operations = tuple(CLIENT.plan_cleanup(name, {"oldToken": None}, live) for name in over)
    if in_use and request.patient:
        operations = ()
    left = _with_old_tokens(request.pending, {*in_use, *over})
    return Cleanup(operations, in_use, left)


def _with_old_tokens(cleanup: PendingCleanup, names: set[str]) -> PendingCleanup:
    others = {section: value for section, value in cleanup.items() if section != _OLD_TOKENS}
    return {**others, _OLD_TOKENS: sorted(names)} if names else others


CONNECTION = ConnectionType(
    makes=FlagService,
    settings=FlagSettings,
    locate=lambda settings, around: FlagService(around.folder / settings.file, around.timeout_s),
)
PROVIDER = Provider(
    "flags",
    connection=CONNECTION,
    kinds=(FLAG, CLIENT),
    operation_types=(*FLAG.operation_types, *CLIENT.operation_types),
    collectors=(CONTENTS,),
    find_cleanup=find_cleanup,
)
