"""What stands for a verb that this kdeclare does not have: its operations can be shown, never run.

A run of a provider that is not installed, or of a newer kdeclare, must not keep `status`, `history` and the
recovery of later commands from working.
"""

from collections.abc import Mapping, Sequence

from kdeclare.core.arguments import UnboundArguments
from kdeclare.core.changes import FieldChange
from kdeclare.core.collector import Selections
from kdeclare.core.faults import Fault, FaultKind, Result
from kdeclare.core.operation_type import OperationType, View
from kdeclare.core.operations import Operation
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.secrets import SecretSource
from kdeclare.core.undoing import Undo

_EFFECT = "effect"


class UnknownOperationType(OperationType):
    """Sees nothing, does nothing, and cannot be undone."""

    arguments = UnboundArguments

    def __init__(self, name: str) -> None:
        self.name = name

    def select(self, op: Operation) -> Selections:
        """Nothing."""
        return ()

    def view(self, op: Operation, live: LiveState) -> View:
        """That nobody can tell."""
        return {_EFFECT: "unknown"}

    def expected_state(self, op: Operation) -> View:
        """That it was done, which nobody can tell."""
        return {_EFFECT: "done"}

    def fields(self, op: Operation) -> tuple[FieldChange, ...]:
        """None that could be told."""
        return ()

    def claims(self, op: Operation) -> Mapping[str, str]:
        """Itself."""
        return {_EFFECT: f"operation/{op.id}"}

    def item(self, op: Operation) -> str:
        """Itself."""
        return op.id

    def produces(self, op: Operation) -> frozenset[str]:
        """Nothing that could be told."""
        return frozenset()

    def execute(
        self,
        connections: Connections,
        ops: Sequence[Operation],
        secrets: SecretSource,
        *,
        validate_only: bool,
    ) -> Mapping[str, Result]:
        """A fault for each."""
        text = f"This kdeclare has no verb '{self.name}'."
        return {op.id: Fault("UNKNOWN_VERB", text, FaultKind.REFUSED) for op in ops}

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> Undo:
        """It cannot be undone here."""
        return Undo(lost=(f"what {self.name} did",))
