"""The options of ``kdeclare group``, which are those of Kafka's ConsumerGroupCommand."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.whole_number import parse_whole_number
from kdeclare.providers.kafka.commands.options import split_names

if TYPE_CHECKING:
    from kdeclare.providers.kafka.commands.group_changes import (
        GroupNames,
        OffsetDeletionRequest,
        ResetRequest,
        TopicPartitions,
    )
    from kdeclare.providers.kafka.consumer_group.group import GroupType
    from kdeclare.providers.kafka.consumer_group.reset import Reset

_INT64 = 2**63 - 1


@dataclass(frozen=True, slots=True)
class GroupSelectionOptions:
    """The groups that the user selects: with arguments, or with ``--group`` as in Kafka's tool."""

    names: Annotated[
        list[str] | None, typer.Argument(metavar="ID", help="Ids of groups.", show_default=False)
    ] = None
    group: Annotated[
        list[str] | None, typer.Option("--group", metavar="ID", help="Id of a group. Repeatable.")
    ] = None
    all_groups: Annotated[bool, typer.Option("--all-groups", help="All consumer groups.")] = False

    def select(self) -> "GroupNames":
        """Return the selected groups. Raises BadParameter unless users pass either ids or --all-groups."""
        from kdeclare.providers.kafka.commands.group_changes import GroupNames

        names = tuple(dict.fromkeys([*(self.names or ()), *(self.group or ())]))
        if names and self.all_groups:
            raise typer.BadParameter("cannot be combined with ids of groups.", param_hint="--all-groups")
        if not names and not self.all_groups:
            raise typer.BadParameter("name a group, or pass --all-groups.", param_hint="--group")
        return GroupNames(names)


@dataclass(frozen=True, slots=True)
class ListFilter:
    """The options that filter the list of groups by state and type."""

    in_state: Annotated[
        list[str] | None,
        typer.Option(
            "--in-state", metavar="STATE[,…]", help="Only groups in these states, such as Stable or Empty."
        ),
    ] = None
    type: Annotated[
        list[str] | None,
        typer.Option(
            "--type", metavar="TYPE[,…]", help="Only these types: classic, consumer, share, streams."
        ),
    ] = None

    def states(self) -> frozenset[str]:
        """Return the states in lower case. An empty set means all states.

        Raises BadParameter for an unknown state.
        """
        from kdeclare.providers.kafka.consumer_group.group import GROUP_STATES

        names = split_names(self.in_state)
        for name in names:
            if name.lower() not in map(str.lower, GROUP_STATES):
                raise typer.BadParameter(
                    f"'{name}' is not a state; use {', '.join(GROUP_STATES)}.", param_hint="--in-state"
                )
        return frozenset(name.lower() for name in names)

    def types(self) -> "frozenset[GroupType]":
        """Return the types. An empty set means all types. Raises BadParameter for an unknown type."""
        from kdeclare.providers.kafka.consumer_group.group import GroupType

        known = {type_.value: type_ for type_ in GroupType}
        names = [name.lower() for name in split_names(self.type)]
        for name in names:
            if name not in known:
                raise typer.BadParameter(
                    f"'{name}' is not a type; use {', '.join(known)}.", param_hint="--type"
                )
        return frozenset(known[name] for name in names)


@dataclass(frozen=True, slots=True)
class OffsetScope:
    """The partitions whose offsets a command changes."""

    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            metavar="TOPIC[:P,…]",
            help="All partitions of a topic, or only these: orders:0,1. Repeatable.",
        ),
    ] = None
    all_topics: Annotated[
        bool,
        typer.Option("--all-topics", help="All partitions for which the group has committed offsets."),
    ] = False

    def parse_topics(self) -> "TopicPartitions":
        """Return the partitions by topic. An empty tuple means all partitions. Raises BadParameter."""
        topics: dict[str, tuple[int, ...]] = {}
        for text in self.topic or ():
            name, colon, numbers = text.partition(":")
            parts = [part.strip() for part in numbers.split(",")] if colon else []
            if not name or not all(parse_whole_number(part) is not None for part in parts):
                raise typer.BadParameter(
                    f"'{text}' is not of the form TOPIC or TOPIC:PARTITION,PARTITION.", param_hint="--topic"
                )
            topics[name] = tuple(sorted({*topics.get(name, ()), *map(int, parts)}))
        return topics


@dataclass(frozen=True, slots=True)
class ResetTargets:
    """The options for the target of an offset reset. Users must pass exactly one of these options."""

    to_earliest: Annotated[
        bool, typer.Option("--to-earliest", help="Reset to the first offset of each partition.")
    ] = False
    to_latest: Annotated[
        bool, typer.Option("--to-latest", help="Reset to the end of each partition, which skips all records.")
    ] = False
    to_current: Annotated[
        bool,
        typer.Option(
            "--to-current",
            help="Keep committed offsets. For partitions without a committed offset, commit the end offset.",
        ),
    ] = False
    to_offset: Annotated[
        int | None, typer.Option(metavar="N", min=0, max=_INT64, help="Reset to this offset.")
    ] = None
    shift_by: Annotated[
        int | None,
        typer.Option(metavar="N", help="Move forward by N records, or back if N is negative."),
    ] = None
    to_datetime: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Reset to the first record at or after YYYY-MM-DDThh:mm:ss.sss (UTC, unless "
            "the time ends with a zone).",
        ),
    ] = None
    by_duration: Annotated[
        str | None,
        typer.Option(metavar="PnDTnHnMnS", help="Reset to the first record that is at most this old."),
    ] = None
    from_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Reset to the offsets in a CSV file: topic,partition,offset or "
            "group,topic,partition,offset.",
        ),
    ] = None

    def build_reset(self) -> "Reset":
        """Return the reset to the target that the user chose.

        Raises BadParameter unless the user chose exactly one target. Raises KdeclareError for an invalid
        offsets file.
        """
        from kdeclare.providers.kafka.consumer_group.reset import Reset, ResetTarget

        values = {target: getattr(self, target.value.replace("-", "_")) for target in ResetTarget}
        chosen = [target for target, value in values.items() if value is not None and value is not False]
        if len(chosen) != 1:
            raise typer.BadParameter(
                f"specify exactly one of {', '.join(f'--{target}' for target in ResetTarget)}.",
                param_hint=" ".join(f"--{target}" for target in chosen) or "reset-offsets",
            )
        if self.from_file is not None:
            from kdeclare.providers.kafka.consumer_group.reset_values import parse_offsets_file

            offsets = parse_offsets_file(read_text(self.from_file), str(self.from_file))
            return Reset(ResetTarget.FILE, offsets=offsets)
        return Reset(chosen[0], self._parse_number())

    def _parse_number(self) -> int:
        from kdeclare.providers.kafka.consumer_group.reset_values import parse_duration_ms, parse_time_ms

        try:
            if self.to_datetime is not None:
                return max(0, parse_time_ms(self.to_datetime))  # negative times have special meanings
            if self.by_duration is not None:
                return max(0, int(time.time() * 1000) - parse_duration_ms(self.by_duration))
        except ValueError as problem:
            option = "--by-duration" if self.to_datetime is None else "--to-datetime"
            raise typer.BadParameter(f"{problem}.", param_hint=option) from None
        return self.to_offset or self.shift_by or 0


@dataclass(frozen=True, slots=True)
class ExecutionOptions:
    """The options of Kafka's tool for making the change, only showing it, or exporting the new offsets."""

    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan without changing anything.")] = (
        False
    )
    execute: Annotated[
        bool,
        typer.Option(
            "--execute",
            help="Make the change after confirmation. This is the default.",
        ),
    ] = False
    export: Annotated[
        bool,
        typer.Option(
            "--export", help="Print the new offsets as CSV for --from-file, without changing anything."
        ),
    ] = False

    def is_dry_run(self) -> bool:
        """Whether the command changes nothing, because it only shows the plan or exports the new offsets.

        Raises BadParameter if the options contradict each other.
        """
        if self.execute and (self.dry_run or self.export):
            raise typer.BadParameter(
                "changes nothing, so it cannot be combined with --execute.",
                param_hint="--dry-run" if self.dry_run else "--export",
            )
        return self.dry_run or self.export


def build_reset_request(
    groups: GroupSelectionOptions, scope: OffsetScope, targets: ResetTargets
) -> "ResetRequest":
    """Return the requested reset. Raises BadParameter for options that contradict each other."""
    from kdeclare.providers.kafka.commands.group_changes import ResetRequest
    from kdeclare.providers.kafka.consumer_group.reset import ResetTarget

    reset, names = targets.build_reset(), groups.select()
    has_scope = bool(scope.topic) or scope.all_topics
    if reset.target is ResetTarget.FILE and has_scope:
        raise typer.BadParameter(
            "cannot be combined with --topic or --all-topics, because the file lists the partitions.",
            param_hint="--from-file",
        )
    if reset.target is not ResetTarget.FILE:
        _require_scope(scope)
    if "" in reset.offsets and len(names.ids) != 1:
        raise typer.BadParameter(
            "for several groups, each line must start with a group.", param_hint="--from-file"
        )
    return ResetRequest(names, reset, scope.parse_topics())


def build_offset_deletion_request(
    groups: GroupSelectionOptions, scope: OffsetScope
) -> "OffsetDeletionRequest":
    """Return the offsets to delete. Raises BadParameter for options that contradict each other."""
    from kdeclare.providers.kafka.commands.group_changes import OffsetDeletionRequest

    names = groups.select()
    _require_scope(scope)
    return OffsetDeletionRequest(names, scope.parse_topics())


def _require_scope(scope: OffsetScope) -> None:
    if not scope.topic and not scope.all_topics:
        raise typer.BadParameter("specify the topics, or pass --all-topics.", param_hint="--topic")
    if scope.topic and scope.all_topics:
        raise typer.BadParameter("cannot be combined with --topic.", param_hint="--all-topics")


def read_text(file: Path) -> str:
    """Return the content of a text file. Raises KdeclareError if the file cannot be read."""
    try:
        return file.read_bytes().decode("utf-8-sig")
    except OSError as problem:
        reason = problem.strerror or str(problem)
    except UnicodeDecodeError:
        reason = "the file is not UTF-8 text"
    raise KdeclareError(error("unreadable-file", "Cannot read the file", f"{file}: {reason}."))
