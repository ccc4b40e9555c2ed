"""The provider of feature flags: a connection, two kinds and a cleanup."""

from pydantic import BaseModel, ConfigDict, Field

from kdeclare.core.operations.completion import Completion
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import LiveState
from kdeclare.core.plans.run import Status
from kdeclare.core.plans.state import PendingCleanup
from kdeclare.core.provider.connection import ConnectionType
from kdeclare.core.provider.provider import Cleanup, CleanupRequest, Provider, find_pending, with_pending
from kdeclare.core.resources.object_system import ObjectCollector, ObjectSystem, SystemObjectKind
from kdeclare.core.resources.objects import ObjectSpec, get_fields
from kdeclare.core.secrets.secret_refs import SecretText
from kdeclare_flags.service import Contents, FlagService

OLD_TOKENS = "flags.old-tokens"
SYSTEM = ObjectSystem("flags", FlagService, Contents)


class FlagSettings(BaseModel):
    """The settings of an environment: the path of the service's file, relative to the project folder."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    file: str


class FlagSpec(ObjectSpec):
    """The ``spec`` of a Flag. A flag is on for a percentage of the users."""

    description: str | None = Field(default=None, description="Purpose of the flag.")
    rollout: int = Field(default=100, ge=0, le=100, description="Percentage of users with the flag on.")


class FlagClientSpec(ObjectSpec):
    """The ``spec`` of a FlagClient. A client is a program that uses a token to read flags."""

    flags: list[str] = Field(description="Flags that the client reads.")
    token: SecretText = Field(description="Token that the client authenticates with.")


class Rollout(Completion):
    """The completion of a change to a flag. The change reaches the clients some time after the request."""

    def is_ongoing(self, op: Operation, live: LiveState) -> bool:
        """See `Completion`."""
        return op.resource in live.get(Contents).ongoing


class FlagClientKind(SystemObjectKind):
    """The kind FlagClient. After a token is replaced, the old token stays valid for a grace period."""

    def update_cleanup(self, op: Operation, status: Status, before: PendingCleanup) -> PendingCleanup:
        """See `ObjectKind`."""
        names = find_pending(before, OLD_TOKENS)
        if status is Status.DONE and op.verb == self.update.name and "token" in get_fields(op):
            names |= {op.resource.name}
        elif status is Status.DONE and op.verb == self.tidy.name:
            names -= {op.resource.name}
        return with_pending(before, OLD_TOKENS, names)


FLAG = SystemObjectKind(SYSTEM, "Flag", FlagSpec, completion=Rollout())
CLIENT = FlagClientKind(SYSTEM, "FlagClient", FlagClientSpec, references={"flags": "Flag"})


def find_cleanup(request: CleanupRequest) -> Cleanup | None:
    """Return the operations that revoke old tokens after their grace period. Raises Fault."""
    names = find_pending(request.pending, OLD_TOKENS)
    if not names:
        return None
    live = LiveState(SYSTEM.read(request.connections))
    states = {name: fields.get("oldToken") for name, fields in CLIENT.read(live).items()}
    in_use = tuple(sorted(name for name in names if states.get(name) == "valid"))
    over = tuple(sorted(name for name in names if states.get(name) == "expired"))
    revoked = () if in_use and request.patient else over
    operations = tuple(CLIENT.plan_cleanup(name, {"oldToken": None}, live) for name in revoked)
    return Cleanup(operations, in_use, with_pending(request.pending, OLD_TOKENS, (*in_use, *over)))


CONNECTION = ConnectionType(
    makes=FlagService,
    settings=FlagSettings,
    locate=lambda settings, around: FlagService(around.folder / settings.file, around.timeout_s),
)
PROVIDER = Provider(
    "flags",
    api_version="flags.example/v1",
    connection=CONNECTION,
    kinds=(FLAG, CLIENT),
    operation_types=(*FLAG.operation_types, *CLIENT.operation_types),
    collectors=(ObjectCollector(SYSTEM, (FLAG, CLIENT)),),
    find_cleanup=find_cleanup,
)
