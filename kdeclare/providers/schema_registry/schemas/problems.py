"""The errors in the text of a schema, with their positions."""

from kdeclare.core.frozen_dataclass import dataclass

MAX_PROBLEMS = 20
"""The maximum number of problems that are reported for one schema.

There is a maximum because the whole text must be read to find the position of each problem.
"""


@dataclass(frozen=True, slots=True)
class SchemaProblem:
    """One error in the text of a schema.

    message: one or more full sentences.
    path: the part of the schema, such as ``fields[2].type`` in Avro or ``Order.id`` in Protobuf; empty for
        the whole schema.
    line, column: the position in the text, starting at 1; None if it is unknown.
    """

    message: str
    path: str = ""
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        position = f"line {self.line}, column {self.column}" if self.line is not None else ""
        location = ", ".join(part for part in (position, self.path) if part)
        return f"{location}: {self.message}" if location else self.message


class SchemaError(ValueError):
    """Raised if a text is not a valid schema. ``problems`` has at least one element."""

    def __init__(self, *problems: SchemaProblem) -> None:
        self.problems = problems
        super().__init__("; ".join(map(str, problems)))

    def __reduce__(self) -> tuple[type["SchemaError"], tuple[SchemaProblem, ...]]:
        return SchemaError, self.problems
