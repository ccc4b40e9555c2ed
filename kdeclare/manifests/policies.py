"""The fields that all policies share, and the policies that a project file declares."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator
from yaml.nodes import MappingNode, Node, SequenceNode

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, SourcePosition, error, sort_diagnostics
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.plans.plan import SYSTEM_POLICY
from kdeclare.core.provider.provider_queries import find_guards
from kdeclare.core.resources.kind import SpecPath
from kdeclare.manifests.document_models import TextMap
from kdeclare.manifests.syntax.node_reader import TEXT, NodeReader, build_modes_by_name
from kdeclare.manifests.syntax.nodes import find_node, find_position, get_position

Severity = Literal["deny", "warn"]
TopicAction = Literal["CREATE", "MODIFY", "DELETE"]

_NAME = re.compile(r"[\w.-](?:[\w. -]*[\w.-])?")
_LONGEST_NAME = 100
_CONFIG_MODES = build_modes_by_name({"labels": TEXT})

_CLASS = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*")


_NAMES = "Names of topics, or regular expressions (RE2) between slashes that match whole names."


TOPIC = "Topic"
"""The kind that a policy checks by default, because KIP-201 defines policies only for topics."""


class SelectorSpec(BaseModel):
    """``selector``: the names and labels of the resources that a policy checks.

    Names can be ``/regular expressions/``. A resource must have all of the labels. Use ``topics`` for the
    names of topics, and ``names`` for the names of resources of any kind.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    topics: Annotated[Annotated[list[str], Field(min_length=1)] | None, Field(description=_NAMES)] = None
    labels: Annotated[
        TextMap, Field(description="The labels that the manifest of a resource must have.")
    ] = {}
    kind: Annotated[str, Field(min_length=1)] = TOPIC
    names: Annotated[
        Annotated[list[str], Field(min_length=1)] | None,
        Field(description="Names of resources of any kind, in the same form as topics."),
    ] = None


class PolicySpecBase(BaseModel):
    """The fields of all policies, in manifests and in project files."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    severity: Severity = "deny"
    actions: Annotated[list[TopicAction], Field(min_length=1)] = ["CREATE", "MODIFY", "DELETE"]
    selector: SelectorSpec = SelectorSpec()


class PolicyEntrySpec(PolicySpecBase):
    """An element of ``spec.policies`` in a project file: a policy class and its settings."""

    name: Annotated[str, Field(min_length=1)]
    class_name: str = Field(alias="class")
    config: dict[str, Any] = {}

    @field_validator("class_name")
    @classmethod
    def _check_class_name(cls, text: str) -> str:
        if not _CLASS.fullmatch(text):
            raise ValueError(f"write a class as module.path:ClassName{_suggest_class_path(text)}")
        return text


def _suggest_class_path(text: str) -> str:
    """Return a suggestion if a class path has no module, or a dot instead of the colon before the class."""
    module, _, name = text.rpartition(".")
    suggestion = f"{module or 'kdeclare.policy.rules'}:{name}"
    return f", for example {suggestion}" if _CLASS.fullmatch(suggestion) and name[0].isupper() else ""


@dataclass(frozen=True, slots=True)
class PolicyEntry:
    """A policy that a project file declares.

    config: the settings of the class. Scalars have the types that YAML gives them.
    places: the source positions of the key and of the value, by path within the entry.
    """

    name: str
    class_name: str
    config: Mapping[str, Any] = field(default_factory=dict, repr=False)
    severity: Severity = "deny"
    actions: tuple[TopicAction, ...] = ("CREATE", "MODIFY", "DELETE")
    topics: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    kind: str = TOPIC
    names: tuple[str, ...] = ()
    places: Mapping[SpecPath, tuple[SourcePosition, SourcePosition]] = field(
        default_factory=dict, repr=False, compare=False
    )

    def where(self, path: SpecPath = (), *, key: bool = False) -> SourcePosition | None:
        """Return the source position of a path in this entry, for example ``("config", "max")``.

        If the path does not exist, return the position of the deepest value that exists on the path.

        key: whether to return the position of the last key in the path rather than that of its value.
        """
        for length in range(len(path), -1, -1):
            if path[:length] in self.places:
                return self.places[path[:length]][0 if key and length == len(path) else 1]
        return None


def check_policy_name(name: str) -> Diagnostic | None:
    """Return an error without a position if the name of a policy is invalid; otherwise None."""
    if name == SYSTEM_POLICY:
        return error(
            "reserved-name",
            "Reserved name",
            f"'{SYSTEM_POLICY}' is the name of the policy that is configured on the brokers.",
            hint="Choose another name.",
            subject=name,
        )
    if name in find_guards():
        return error(
            "reserved-name",
            "Reserved name",
            f"'{name}' is the name of a guard that kdeclare itself applies.",
            hint="Choose another name.",
            subject=name,
        )
    if len(name) <= _LONGEST_NAME and (not name or _NAME.fullmatch(name)):
        return None
    return error(
        "illegal-name",
        "Illegal name",
        f"A policy's name can have at most {_LONGEST_NAME} characters: letters, digits, '.', '-', '_' and "
        "spaces. It cannot start or end with a space.",
        hint="Shorten or correct the name. Explanations belong in the messages of the policy.",
    )


def build_policy_entries(
    specs: Sequence[PolicyEntrySpec], root: Node, reader: NodeReader
) -> tuple[PolicyEntry, ...]:
    """Return the policies of a project file. Raises KdeclareError for invalid or duplicate names."""
    problems = list(_check_names(specs, root))
    if problems:
        raise KdeclareError(*sort_diagnostics(problems))
    return tuple(
        _build_entry(spec, find_node(root, ("spec", "policies", n)), reader) for n, spec in enumerate(specs)
    )


def _check_names(specs: Sequence[PolicyEntrySpec], root: Node) -> Iterator[Diagnostic]:
    first_positions: dict[str, SourcePosition] = {}
    for n, spec in enumerate(specs):
        name_position = find_position(root, ("spec", "policies", n, "name"))
        name_error = check_policy_name(spec.name)
        if name_error is not None:
            yield replace(name_error, place=name_position)
        if first_positions.setdefault(spec.name, name_position) is not name_position:
            yield error(
                "duplicate-policy",
                "Duplicate policy name",
                f"The policy at {first_positions[spec.name]} is also named '{spec.name}'.",
                hint="Give each policy a unique name.",
                place=name_position,
                subject=spec.name,
            )


def _build_entry(spec: PolicyEntrySpec, node: Node | None, reader: NodeReader) -> PolicyEntry:
    config = find_node(node, ("config",)) if node is not None else None
    return PolicyEntry(
        spec.name,
        spec.class_name,
        # The modes for project files read fields such as `configs` as strings at any depth. In the config of
        # a policy, only `labels` contains strings, so the config is read again in different modes.
        NodeReader(reader.scope, modes=_CONFIG_MODES).read(config) if config is not None else {},
        spec.severity,
        tuple(spec.actions),
        tuple(spec.selector.topics or ()),
        spec.selector.labels,
        spec.selector.kind,
        tuple(spec.selector.names or ()),
        dict(_collect_positions(node, node, ())) if node is not None else {},
    )


def _collect_positions(
    key: Node, value: Node, path: SpecPath
) -> Iterator[tuple[SpecPath, tuple[SourcePosition, SourcePosition]]]:
    yield path, (get_position(key), get_position(value))
    if isinstance(value, MappingNode):
        for k, v in value.value:
            yield from _collect_positions(k, v, (*path, k.value))
    elif isinstance(value, SequenceNode):
        for n, item in enumerate(value.value):
            yield from _collect_positions(item, item, (*path, n))
