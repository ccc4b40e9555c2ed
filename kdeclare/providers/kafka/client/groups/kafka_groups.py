"""`KafkaGroups`, which sends requests about groups to the brokers that coordinate these groups."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from kdeclare.core.live.faults import Fault, FaultKind, Result
from kdeclare.providers.kafka.client.faults import build_unanswered_fault
from kdeclare.providers.kafka.client.groups.messages import (
    build_commit_request,
    build_coordinators_request,
    build_delete_request,
    build_describe_request,
    build_fetch_request,
    build_list_request,
    build_offset_delete_request,
    read_coordinators,
    read_delete_results,
    read_group_rights,
    read_listed_groups,
    read_members,
    read_offset_results,
    read_offsets,
)
from kdeclare.providers.kafka.client.wire import Wire, batch_items
from kdeclare.providers.kafka.consumer_group.group import (
    DescribedGroup,
    GroupMember,
    GroupOffsets,
    GroupPartition,
    GroupType,
    ListedGroup,
)
from kdeclare.providers.kafka.consumer_group.port import OffsetChanges

_FIND_COORDINATOR, _OFFSET_FETCH = 10, 9
_SEVERAL_COORDINATORS, _SEVERAL_GROUPS = 4, 8
"""The first versions of FindCoordinator and OffsetFetch that can contain several groups."""
_PARTITIONS_PER_COMMIT = 1000
"""The maximum number of partitions in one request to change offsets.

The coordinator writes the offsets of one request as one record batch, and the size of a batch is limited.
"""

T = TypeVar("T")


class KafkaGroups:
    """Reads and changes groups by sending requests to the brokers of a cluster. Thread-safe."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def list_groups(self) -> Mapping[str, ListedGroup]:
        """Send ListGroups to every broker. Each broker returns the groups that it coordinates."""
        requests = {broker: [build_list_request()] for broker in self._wire.brokers()}
        groups: dict[str, ListedGroup] = {}
        for answers in self._wire.send_each(requests, read_listed_groups).values():
            for answer in answers:
                groups |= self._require(answer)
        return groups

    def describe_groups(self, ids: Sequence[str]) -> Mapping[str, DescribedGroup]:
        """Send ListGroups to find the type of each group, and then the describe request for each type."""
        listed = self.list_groups()
        found = {id_: listed[id_] for id_ in dict.fromkeys(ids) if id_ in listed}
        described = {id_: DescribedGroup(group) for id_, group in found.items()}
        for type_ in (GroupType.CLASSIC, GroupType.CONSUMER):
            members = self._ask_coordinators(
                [id_ for id_, group in found.items() if group.type is type_],
                partial(build_describe_request, type_),
                lambda response, _: read_members(response),
            )
            for id_, answer in members.items():
                described[id_] = _add_members(found[id_], self._require(answer))
        return described

    def find_rights(self) -> Mapping[str, frozenset[str]]:
        """Return the operations that are granted on each visible group whose offsets kdeclare can change."""
        listed = self.list_groups()
        granted: dict[str, frozenset[str]] = {}
        for type_ in (GroupType.CLASSIC, GroupType.CONSUMER):
            answers = self._ask_coordinators(
                [id_ for id_, group in listed.items() if group.type is type_],
                partial(build_describe_request, type_, with_rights=True),
                lambda response, _: read_group_rights(response),
            )
            granted |= {id_: rights for id_, rights in answers.items() if not isinstance(rights, Fault)}
        return granted

    def fetch_offsets(self, ids: Sequence[str]) -> Mapping[str, GroupOffsets]:
        """Send OffsetFetch to the coordinators."""
        has_batches = not ids or self._wire.get_max_version(_OFFSET_FETCH) >= _SEVERAL_GROUPS
        answers = self._ask_coordinators(
            ids, build_fetch_request, read_offsets, size=None if has_batches else 1
        )
        return {id_: self._require(answer) for id_, answer in answers.items()}

    def alter_offsets(self, changes: Mapping[str, OffsetChanges]) -> Mapping[GroupPartition, Result]:
        """Send OffsetCommit and OffsetDelete to the coordinators."""
        coordinators = self._find_coordinators(list(changes))
        results: dict[GroupPartition, Result] = {}
        batches: dict[int, list[tuple[str, OffsetChanges, Any]]] = {}
        for id_, group_changes in changes.items():
            node = coordinators[id_]
            if isinstance(node, Fault):
                results |= {(id_, where): node for where in group_changes}
                continue
            batches.setdefault(node, []).extend(_build_offset_requests(id_, group_changes))
        answers = self._wire.send_each(
            {node: [request for _, _, request in parts] for node, parts in batches.items()},
            lambda response: response,
            changes=True,
        )
        for node, parts in batches.items():
            for (id_, part, _), answer in zip(parts, answers[node], strict=True):
                results |= _collect_offset_results(id_, part, answer)
        self._refresh_after(results.values())
        return results

    def delete_groups(self, ids: Sequence[str]) -> Mapping[str, Result]:
        """Send DeleteGroups to the coordinators."""
        answers = self._ask_coordinators(
            ids, build_delete_request, lambda response, _: read_delete_results(response), changes=True
        )
        self._refresh_after(answers.values())
        return answers

    def _ask_coordinators(
        self,
        ids: Sequence[str],
        build_request: Callable[[list[str]], Any],
        read_response: Callable[[Any, list[str]], Mapping[str, T | Fault]],
        *,
        size: int | None = None,
        changes: bool = False,
    ) -> dict[str, T | Fault]:
        """Send requests for batches of groups to coordinators. Return the response or Fault for each group.

        size: the maximum number of groups in a request, or None for the default batch size.
        """
        results: dict[str, T | Fault] = {}
        ids_by_node: dict[int, list[str]] = {}
        for id_, node in self._find_coordinators(list(dict.fromkeys(ids))).items():
            if isinstance(node, Fault):
                results[id_] = node
            else:
                ids_by_node.setdefault(node, []).append(id_)
        batches = {
            node: batch_items(own_ids, size) if size else batch_items(own_ids)
            for node, own_ids in ids_by_node.items()
        }
        answers = self._wire.send_each(
            {node: [build_request(batch) for batch in parts] for node, parts in batches.items()},
            lambda response: response,
            changes=changes,
        )
        for node, parts in batches.items():
            for batch, answer in zip(parts, answers[node], strict=True):
                answered = {} if isinstance(answer, Fault) else read_response(answer, batch)
                missing = answer if isinstance(answer, Fault) else build_unanswered_fault()
                results |= {id_: answered.get(id_, missing) for id_ in batch}
        return results

    def _find_coordinators(self, ids: list[str]) -> dict[str, int | Fault]:
        """Return the coordinator of each group, or a Fault if no coordinator can be found now."""
        if not ids:
            return {}
        has_batches = self._wire.get_max_version(_FIND_COORDINATOR) >= _SEVERAL_COORDINATORS
        batches = batch_items(ids) if has_batches else batch_items(ids, 1)
        answers = self._wire.ask(
            [build_coordinators_request(batch) for batch in batches],
            lambda response: response,
            changes=False,
            nodes=self._wire.brokers(),
        )
        coordinators: dict[str, int | Fault] = {}
        for batch, answer in zip(batches, answers, strict=True):
            found = {} if isinstance(answer, Fault) else read_coordinators(answer, batch)
            missing = answer if isinstance(answer, Fault) else build_unanswered_fault()
            coordinators |= {id_: found.get(id_, missing) for id_ in batch}
        return coordinators

    def _require(self, answer: T | Fault) -> T:
        """Return the response, or raise the Fault."""
        if isinstance(answer, Fault):
            self._refresh_after([answer])
            raise answer
        return answer

    def _refresh_after(self, results: Iterable[object]) -> None:
        """Refresh the metadata if a retriable fault indicates that a coordinator may have moved."""
        if any(isinstance(item, Fault) and item.kind is FaultKind.RETRIABLE for item in results):
            self._wire.request_refresh()


def _add_members(group: ListedGroup, described: tuple[str, tuple[GroupMember, ...]]) -> DescribedGroup:
    """Return the group with its state and members.

    Brokers before Kafka 2.6 do not list the states of groups.
    """
    state, members = described
    return DescribedGroup(ListedGroup(group.id, group.type, group.protocol, state or group.state), members)


def _build_offset_requests(id_: str, changes: OffsetChanges) -> list[tuple[str, OffsetChanges, Any]]:
    """Return the requests for one group, each with the changes that it makes."""
    committed = {where: offset for where, offset in changes.items() if offset is not None}
    deleted = [where for where, offset in changes.items() if offset is None]
    requests: list[tuple[str, OffsetChanges, Any]] = []
    for batch in batch_items(committed.items(), _PARTITIONS_PER_COMMIT):
        requests.append((id_, dict(batch), build_commit_request(id_, dict(batch))))
    for part in batch_items(deleted, _PARTITIONS_PER_COMMIT):
        requests.append((id_, dict.fromkeys(part), build_offset_delete_request(id_, part)))
    return requests


def _collect_offset_results(id_: str, changes: OffsetChanges, answer: Any) -> dict[GroupPartition, Result]:
    try:
        results = {} if isinstance(answer, Fault) else read_offset_results(answer, id_)
    except Fault as fault:
        answer, results = fault, {}
    missing = answer if isinstance(answer, Fault) else build_unanswered_fault()
    return {(id_, where): results.get(where, missing) for where in changes}
