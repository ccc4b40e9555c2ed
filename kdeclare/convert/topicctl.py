"""Convert the files of topicctl: topics and ACLs."""

import re
from collections.abc import Sequence

from yaml.nodes import MappingNode, Node, ScalarNode

from kdeclare.convert.bindings import AclCollector
from kdeclare.convert.settings import build_topic, take_configs
from kdeclare.convert.source import (
    Findings,
    Section,
    SourceFile,
    build_wrong_file_error,
    get_fields,
    get_text,
)
from kdeclare.core.jsontypes import JsonValue
from kdeclare.manifests.syntax.nodes import get_position, walk_distinct_nodes

_STRATEGIES = ("any", "balanced-leaders", "in-rack", "cross-rack", "static", "static-in-rack")
_ADDRESS = ("cluster", "region", "environment")
_VARIABLE = re.compile(r"\$(\w+|\{\w+\})")
_MS_PER_MINUTE = 60_000


def convert(sources: Sequence[SourceFile], findings: Findings) -> None:
    """Convert the files. Raises KdeclareError if a file contains neither topics nor ACLs nor a cluster."""
    acls = AclCollector(findings)
    for source in sources:
        nodes = [node for node in source.documents if {"meta", "spec"} <= get_fields(node).keys()]
        if not nodes or len(nodes) < len(source.documents):
            hint = "Pass the files in the folders 'topics' and 'acls' of topicctl."
            raise build_wrong_file_error(source, "only documents with 'meta' and 'spec'", hint)
        for node in nodes:
            if isinstance(node, MappingNode):
                _report_variables(node, findings)
                _convert_document(node, findings, acls)
    for resource in acls.build():
        findings.add(resource)


def _report_variables(node: Node, findings: Findings) -> None:
    for scalar in walk_distinct_nodes(node):
        if isinstance(scalar, ScalarNode) and _VARIABLE.search(scalar.value):
            reason = (
                "topicctl replaces environment variables, but kdeclare keeps this text. Run envsubst first."
            )
            findings.report(get_position(scalar), f"'{scalar.value}'", reason)


def _convert_document(node: MappingNode, findings: Findings, acls: AclCollector) -> None:
    fields = get_fields(node)
    spec_fields = get_fields(fields["spec"])
    name = get_text(get_fields(fields["meta"]).get("name"))
    if "bootstrapAddrs" in spec_fields or "zkAddrs" in spec_fields:
        section = Section(node, f"cluster {name}", findings)
        section.report_all(
            "Write the addresses to the project file, under environments.NAME.bootstrapServers."
        )
        return
    kind = "acl" if "acls" in spec_fields else "topic"
    section = Section(node, f"{kind} {name}", findings)
    meta, spec = section.take_section("meta"), section.take_section("spec")
    if meta is None or spec is None:
        section.report_all("The document lacks 'meta' or 'spec'.")
        return
    meta.ignore("name")
    labels = meta.take_labels("labels")
    for field in _ADDRESS:  # kept as labels, for --selector
        value = meta.take_text(field)
        if value:
            labels.setdefault(field, value)
    if kind == "acl":
        _convert_acls(spec, labels, acls)
    else:
        _convert_topic(spec, name, labels, findings)


def _convert_topic(spec: Section, name: str, labels: dict[str, str], findings: Findings) -> None:
    minutes_place = spec.find_place("retentionMinutes")
    minutes = spec.take_integer("retentionMinutes")
    partitions = spec.take_integer("partitions")
    replication_factor = spec.take_integer("replicationFactor")
    configs, places = take_configs(spec.take_section("settings"))
    if minutes:
        configs["retention.ms"] = minutes * _MS_PER_MINUTE
        places["configs", "retention.ms"] = minutes_place
    more = _take_placement(spec.take_section("placement"))
    if "assignments" in more:
        partitions = replication_factor = None  # the assignments determine both numbers
    spec.report("migration", "Set the pace of moves in the project file, under reassignments.")
    findings.add(
        build_topic(
            spec,
            name,
            partitions=partitions,
            replication_factor=replication_factor,
            configs=configs,
            places=places,
            labels=labels,
            more=more,
        )
    )


def _take_placement(section: Section | None) -> dict[str, JsonValue]:
    """Return the fields of a Topic for the placement of replicas.

    The strategy ``any`` needs no field: it is what kdeclare does for a Topic without ``placement``.
    """
    if section is None:
        return {}
    place = section.find_place("strategy")
    strategy = section.take_text("strategy")
    section.report(
        "picker", "kdeclare spreads replicas evenly, and has no other strategy for choosing brokers."
    )
    racks: list[JsonValue] = [text for text, _ in section.take_texts("staticRackAssignments")]
    assignments = section.take_lists("staticAssignments")
    if strategy == "static" and assignments:
        return {"assignments": {str(n): [*map(_to_broker, brokers)] for n, brokers in enumerate(assignments)}}
    if strategy == "static-in-rack":
        return {"placement": {"strategy": strategy, "racks": racks}}
    if strategy not in _STRATEGIES or strategy == "static":
        if strategy:
            section.findings.report(place, f"{section.subject} placement", f"'{strategy}' needs assignments.")
        return {}
    return {} if strategy == "any" else {"placement": {"strategy": strategy}}


def _to_broker(text: str) -> JsonValue:
    return int(text) if text.isdigit() else text


def _convert_acls(spec: Section, labels: dict[str, str], acls: AclCollector) -> None:
    for entry in spec.take_sections("acls"):
        place = entry.place
        resource = entry.take_section("resource")
        if resource is None:
            entry.report_rest("The entry has no resource.")
            continue
        principal = resource.take_text("principal")
        words = {
            "resource_type": resource.take_text("type"),
            "name": resource.take_text("name"),
            "pattern": resource.take_text("patternType"),
            "permission": resource.take_text("permission"),
            "host": resource.take_text("host"),
        }
        for operation, _ in entry.take_texts("operations"):
            acls.add(place, entry.subject, principal=principal, operation=operation, **words)
        if principal:
            acls.add_labels(principal if ":" in principal else f"User:{principal}", labels)
