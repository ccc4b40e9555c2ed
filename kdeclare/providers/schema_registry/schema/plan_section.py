"""The section of a plan that describes how schemas change, in words and side by side, for reviewers."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Literal

from kdeclare.core.operations.operation import Operation
from kdeclare.core.provider.provider import PlanSection, SectionLine, TextComparison
from kdeclare.core.units import format_count
from kdeclare.providers.schema_registry.schema.arguments import (
    ContentArgs,
    DeleteArgs,
    RegisterArgs,
    SubjectArgs,
)
from kdeclare.providers.schema_registry.schema.content import list_differences
from kdeclare.providers.schema_registry.schemas.differences import (
    DifferenceScope,
    SchemaDifference,
    classify_differences,
)

_MAX_DIFFERENCES = 50


def describe_schema_changes(operations: Sequence[Operation]) -> Iterable[PlanSection]:
    """Yield one section if the plan changes the latest versions of existing subjects."""
    yield from _build_section("Schema changes", operations)


def describe_blocked_schemas(operations: Sequence[Operation]) -> Iterable[PlanSection]:
    """Yield one section about the new versions that the plan does not register, because they are blocked."""
    yield from _build_section("Blocked schema changes", operations)


def _build_section(title: str, operations: Sequence[Operation]) -> Iterator[PlanSection]:
    lines = tuple(line for op in operations for line in _describe_operation(op))
    if lines:
        comparisons = tuple(item for op in operations for item in _compare_texts(op))
        yield PlanSection(title, lines, is_for_reviews=True, comparisons=comparisons)


def _compare_texts(op: Operation) -> Iterator[TextComparison]:
    """Yield a side-by-side comparison of the texts, unless only references change."""
    contents = _find_contents(op)
    if contents is not None:
        before, after = (content.normalized for content in contents)
        if before != after:
            # imports the parsers of all languages, which few commands need
            from kdeclare.providers.schema_registry.schemas.text_diff import diff_lines

            compare = partial(diff_lines, before.split("\n"), after.split("\n"))
            yield TextComparison(str(op.resource), compare)


def _find_contents(op: Operation) -> tuple[ContentArgs, ContentArgs] | None:
    """Return the latest content before and after an operation; None if the subject is created or deleted."""
    args = op.args
    if isinstance(args, RegisterArgs) and args.before is not None:
        return args.before, args.content
    if isinstance(args, DeleteArgs) and args.remaining is not None:  # the rollback of a registration
        return args.versions[-1].content, args.remaining
    return None


def _describe_operation(op: Operation) -> Iterator[SectionLine]:
    args, contents = op.args, _find_contents(op)
    if not isinstance(args, SubjectArgs) or contents is None:
        return
    before, after = contents
    title = f"{op.resource} (subject {args.subject} in registry {args.endpoint})"
    if before.type is not after.type:
        yield SectionLine(
            f"{title}: language changed from {before.type.value} to {after.type.value}", is_secondary=True
        )
        return
    differences = list_differences(after.type, before.text, after.text)
    notes = {
        DifferenceScope.NONE: ": only the referenced schemas",
        DifferenceScope.DOCUMENTATION: ": only documentation",
        DifferenceScope.CONTENT: "",
    }
    yield SectionLine(f"{title}{notes[classify_differences(differences)]}", is_secondary=True)
    yield from (SectionLine(item.message, sign=_find_sign(item)) for item in differences[:_MAX_DIFFERENCES])
    left = len(differences) - _MAX_DIFFERENCES
    if left > 0:
        yield SectionLine(f"and {format_count(left, 'more difference')}", is_secondary=True)
    if before.listed != after.listed:
        yield from (
            SectionLine(f"reference {item}", sign="-") for item in before.listed if item not in after.listed
        )
        yield from (
            SectionLine(f"reference {item}", sign="+") for item in after.listed if item not in before.listed
        )


def _find_sign(difference: SchemaDifference) -> Literal["", "+", "-"]:
    """Return ``+`` if a difference is an addition, ``-`` if it is a removal, otherwise an empty string."""
    if difference.kind.endswith("-added"):
        return "+"
    return "-" if difference.kind.endswith("-removed") else ""
