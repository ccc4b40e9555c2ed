"""What manifests and project files say alike of a policy, and the policies of a project file."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator
from yaml.nodes import MappingNode, Node, SequenceNode

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, Place, error, in_order
from kdeclare.core.frozen import dataclass
from kdeclare.core.plans.plan import SYSTEM_POLICY
from kdeclare.core.resources.kind import Path
from kdeclare.manifests.shapes import TextMap
from kdeclare.manifests.syntax.nodes import find, node_at, place
from kdeclare.manifests.syntax.reading import TEXT, Reader, modes_by_name

Severity = Literal["deny", "warn"]
TopicAction = Literal["CREATE", "MODIFY", "DELETE"]

_NAME = re.compile(r"[\w.-](?:[\w. -]*[\w.-])?")
_LONGEST_NAME = 100
_CONFIG_MODES = modes_by_name({"labels": TEXT})

_CLASS = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*")


_NAMES = "Names, or regular expressions (RE2) between slashes that match whole names."


TOPIC = "Topic"
"""The kind that a policy is about if it names no other one: KIP-201 knows topics only."""


class SelectorSpec(BaseModel):
    """``selector``: resources by name or by ``/regular expression/``, and labels that must all be there.

    ``topics`` are names of topics, ``names`` those of whatever kind.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    topics: Annotated[Annotated[list[str], Field(min_length=1)] | None, Field(description=_NAMES)] = None
    labels: Annotated[TextMap, Field(description="Labels that the manifest must all have.")] = {}
    kind: Annotated[str, Field(min_length=1)] = TOPIC
    names: Annotated[
        Annotated[list[str], Field(min_length=1)] | None,
        Field(description="The same as topics, of whatever kind."),
    ] = None


class AppliesTo(BaseModel):
    """The fields that every policy has."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    severity: Severity = "deny"
    actions: Annotated[list[TopicAction], Field(min_length=1)] = ["CREATE", "MODIFY", "DELETE"]
    selector: SelectorSpec = SelectorSpec()


class PolicyEntrySpec(AppliesTo):
    """One of ``spec.policies`` in a project file: a class, and what it is told."""

    name: Annotated[str, Field(min_length=1)]
    class_name: str = Field(alias="class")
    config: dict[str, Any] = {}

    @field_validator("class_name")
    @classmethod
    def _module_and_class(cls, text: str) -> str:
        if not _CLASS.fullmatch(text):
            raise ValueError(f"a class is written as module.path:ClassName{_meant(text)}")
        return text


def _meant(text: str) -> str:
    """For a class without its module, or with a dot before its name."""
    module, _, name = text.rpartition(".")
    meant = f"{module or 'kdeclare.policy.rules'}:{name}"
    return f", {meant} for one" if _CLASS.fullmatch(meant) and name[0].isupper() else ""


@dataclass(frozen=True, slots=True)
class PolicyEntry:
    """A policy of a project file.

    config: what the class is told, its scalars as YAML means them.
    places: of each path within the entry: where its key stands, and where its value does.
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
    places: Mapping[Path, tuple[Place, Place]] = field(default_factory=dict, repr=False, compare=False)

    def where(self, path: Path = (), *, key: bool = False) -> Place | None:
        """Where in the project file something of this entry stands, ``("config", "max")`` for one.

        Where the path leads nowhere, the deepest place on the way. key: of the last key, not of its value.
        """
        for length in range(len(path), -1, -1):
            if path[:length] in self.places:
                return self.places[path[:length]][0 if key and length == len(path) else 1]
        return None


def reserved(name: str) -> Diagnostic | None:
    """What is wrong with a policy's name, if something is; without a place."""
    if name == SYSTEM_POLICY:
        return error(
            "reserved-name",
            "Reserved name",
            f"'{SYSTEM_POLICY}' stands for the policy that the brokers themselves are configured with.",
            hint="Choose another name.",
            subject=name,
        )
    if len(name) <= _LONGEST_NAME and (not name or _NAME.fullmatch(name)):
        return None
    return error(
        "illegal-name",
        "Illegal name",
        f"A policy's name has at most {_LONGEST_NAME} letters, digits, '.', '-' and '_', with spaces inside.",
        hint="What there is to say of it belongs into messages.",
    )


def policy_entries(specs: Sequence[PolicyEntrySpec], root: Node, reader: Reader) -> tuple[PolicyEntry, ...]:
    """The policies of a project file. Raises KdeclareError for names that cannot be."""
    problems = list(_wrong_names(specs, root))
    if problems:
        raise KdeclareError(*in_order(problems))
    return tuple(_entry(spec, node_at(root, ("spec", "policies", n)), reader) for n, spec in enumerate(specs))


def _wrong_names(specs: Sequence[PolicyEntrySpec], root: Node) -> Iterator[Diagnostic]:
    first: dict[str, Place] = {}
    for n, spec in enumerate(specs):
        where = find(root, ("spec", "policies", n, "name"))
        wrong = reserved(spec.name)
        if wrong is not None:
            yield replace(wrong, place=where)
        if first.setdefault(spec.name, where) is not where:
            yield error(
                "duplicate-policy",
                "Two policies of one name",
                f"'{spec.name}' is the name of the policy at {first[spec.name]}, too.",
                hint="Give each a name of its own.",
                place=where,
                subject=spec.name,
            )


def _entry(spec: PolicyEntrySpec, node: Node | None, reader: Reader) -> PolicyEntry:
    config = node_at(node, ("config",)) if node is not None else None
    return PolicyEntry(
        spec.name,
        spec.class_name,
        # read anew, as elsewhere a field called `configs`, say, holds nothing but texts; here `labels` does
        Reader(reader.scope, modes=_CONFIG_MODES).read(config) if config is not None else {},
        spec.severity,
        tuple(spec.actions),
        tuple(spec.selector.topics or ()),
        spec.selector.labels,
        spec.selector.kind,
        tuple(spec.selector.names or ()),
        dict(_places(node, node, ())) if node is not None else {},
    )


def _places(key: Node, value: Node, path: Path) -> Iterator[tuple[Path, tuple[Place, Place]]]:
    yield path, (place(key), place(value))
    if isinstance(value, MappingNode):
        for k, v in value.value:
            yield from _places(k, v, (*path, k.value))
    elif isinstance(value, SequenceNode):
        for n, item in enumerate(value.value):
            yield from _places(item, item, (*path, n))
