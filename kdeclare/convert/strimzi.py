"""Convert Strimzi's custom resources: KafkaTopic, KafkaUser and KafkaConnector."""

from collections.abc import Iterator, Mapping, Sequence

from yaml.nodes import MappingNode, SequenceNode

from kdeclare.convert.bindings import AclCollector
from kdeclare.convert.result import SpecPath
from kdeclare.convert.settings import (
    Credential,
    add_scram_user,
    build_connector,
    build_quota,
    build_topic,
    take_configs,
    take_connector_config,
)
from kdeclare.convert.source import (
    Findings,
    Section,
    SourceFile,
    build_wrong_file_error,
    convert_number,
    get_fields,
    get_text,
)
from kdeclare.core.diagnostics import SourcePosition
from kdeclare.core.jsontypes import JsonValue
from kdeclare.manifests.syntax.nodes import get_position

_GROUP = "kafka.strimzi.io/"
_VERSIONS = ("v1", "v1beta2", "v1beta1", "v1alpha1")
_CLUSTER = "strimzi.io/cluster"
_SERVER_FIELDS = (
    "creationTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
    "finalizers",
)
"""The metadata fields that the Kubernetes API server or a controller sets. They are not converted."""
_SERVER_ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
_LIMITS = {
    "producerByteRate": "producer_byte_rate",
    "consumerByteRate": "consumer_byte_rate",
    "requestPercentage": "request_percentage",
    "controllerMutationRate": "controller_mutation_rate",
}
_REASONS = {
    "Kafka": "kdeclare does not deploy brokers. Declare dynamic broker configs in BrokerConfig manifests.",
    "KafkaNodePool": "kdeclare does not deploy brokers.",
    "KafkaConnect": "kdeclare does not deploy workers. Name the Connect cluster in the project file, under "
    "environments.NAME.connect.",
    "KafkaMirrorMaker2": "kdeclare does not deploy MirrorMaker. Declare its connectors in Connector "
    "manifests.",
    "KafkaRebalance": "Declare a Reassignment, or run kdeclare reassign.",
}


def convert(sources: Sequence[SourceFile], findings: Findings) -> None:
    """Convert the files. Raises KdeclareError if a file contains no Kubernetes resource."""
    acls = AclCollector(findings)
    for source in sources:
        objects = list(_list_objects(source))
        if not objects:
            hint = (
                "Pass files with KafkaTopic, KafkaUser or KafkaConnector resources, as 'kubectl get -o yaml' "
                "prints them."
            )
            raise build_wrong_file_error(source, "Kubernetes resources", hint)
        for node in objects:
            _convert_object(node, findings, acls)
    for resource in acls.build():
        findings.add(resource)


def _list_objects(source: SourceFile) -> Iterator[MappingNode]:
    """Yield the Kubernetes objects of a file, including the items of a ``List`` that kubectl printed."""
    for document in source.documents:
        fields = get_fields(document)
        items = fields.get("items")
        if isinstance(document, MappingNode) and isinstance(items, SequenceNode):
            yield from (item for item in items.value if isinstance(item, MappingNode))
        elif isinstance(document, MappingNode) and "apiVersion" in fields and "kind" in fields:
            yield document


def _convert_object(node: MappingNode, findings: Findings, acls: AclCollector) -> None:
    fields = get_fields(node)
    kind = get_text(fields.get("kind"))
    name = get_text(get_fields(fields.get("metadata", node)).get("name"))
    version = get_text(fields.get("apiVersion"))
    subject = f"{kind}/{name}"
    convert_kind = {
        "KafkaTopic": _convert_topic,
        "KafkaUser": _convert_user,
        "KafkaConnector": _convert_connector,
    }
    if not version.startswith(_GROUP) or kind not in convert_kind:
        reason = _REASONS.get(kind) if version.startswith(_GROUP) else None
        findings.report(get_position(node), subject, reason or f"kdeclare has no equivalent of kind {kind}.")
        return
    if version.removeprefix(_GROUP) not in _VERSIONS:
        findings.report(get_position(node), subject, f"kdeclare does not know the version {version}.")
        return
    section = Section(node, subject, findings)
    section.ignore("apiVersion", "kind", "status")
    metadata = section.take_section("metadata")
    annotations = metadata.take_section("annotations") if metadata is not None else None
    labels = metadata.take_labels("labels") if metadata is not None else {}
    if metadata is not None:
        metadata.ignore("name", *_SERVER_FIELDS)
        metadata.report("namespace", "Manifests have no namespace. The environment determines the cluster.")
    if annotations is not None:
        annotations.ignore(_SERVER_ANNOTATION)
        if annotations.take_text("strimzi.io/managed") == "false":
            annotations.ignore(*annotations.keys)
            section.ignore(*section.keys)
            section.report_all(
                'The resource is annotated with strimzi.io/managed: "false", so Strimzi does not manage it.'
            )
            return
    spec = section.take_section("spec")
    if spec is None:
        section.report_all("The resource has no spec.")
        return
    convert_kind[kind](spec, name, labels, findings, acls)


def _convert_topic(
    spec: Section, name: str, labels: Mapping[str, str], findings: Findings, acls: AclCollector
) -> None:
    del acls
    configs, places = take_configs(spec.take_section("config"))
    findings.add(
        build_topic(
            spec,
            spec.take_text("topicName") or name,
            partitions=spec.take_integer("partitions"),
            replication_factor=spec.take_integer("replicas"),
            configs=configs,
            places=places,
            labels=labels,
        )
    )


def _convert_user(
    spec: Section, name: str, labels: Mapping[str, str], findings: Findings, acls: AclCollector
) -> None:
    user = name
    authentication_place = spec.find_place("authentication")
    authentication = spec.take_section("authentication")
    type_ = authentication.take_text("type") if authentication is not None else ""
    if type_ in ("tls", "tls-external"):
        user = f"CN={name}"
        if type_ == "tls":
            findings.report(authentication_place, spec.subject, "kdeclare does not issue certificates.")
    elif type_ == "scram-sha-512" and authentication is not None:
        authentication.ignore("password")
        credential = Credential(authentication_place, f"{spec.subject} (in a Secret)")
        add_scram_user(findings, name, {"SCRAM-SHA-512": credential}, labels)
    elif type_:
        findings.report(
            authentication_place, spec.subject, f"kdeclare does not know the authentication '{type_}'."
        )
    _convert_rights(spec.take_section("authorization"), f"User:{user}", labels, acls)
    quotas = spec.take_section("quotas")
    if quotas is not None:
        limits, places = _take_limits(quotas)
        if limits:
            findings.add(build_quota(quotas.place, f"user-{name}", {"user": user}, limits, places, labels))


def _take_limits(quotas: Section) -> tuple[dict[str, JsonValue], dict[SpecPath, SourcePosition]]:
    limits: dict[str, JsonValue] = {}
    places: dict[SpecPath, SourcePosition] = {}
    for field, key in _LIMITS.items():
        place = quotas.find_place(field)
        text = quotas.take_text(field)
        if text:
            limits[key] = convert_number(text)
            places["limits", key] = place
    return limits, places


def _convert_rights(
    section: Section | None, principal: str, labels: Mapping[str, str], acls: AclCollector
) -> None:
    if section is None:
        return
    type_ = section.take_text("type")
    if type_ not in ("", "simple"):
        section.report("acls", f"kdeclare does not support the authorization type '{type_}'.")
        return
    for rule in section.take_sections("acls"):
        place = rule.place
        resource = rule.take_section("resource")
        if resource is None:
            rule.report_rest("The rule has no resource.")
            continue
        # v1beta1 has one operation in 'operation'
        operations = [text for text, _ in rule.take_texts("operations")] or [rule.take_text("operation")]
        words = {
            "resource_type": resource.take_text("type"),
            "name": resource.take_text("name"),
            "pattern": resource.take_text("patternType"),
            "permission": rule.take_text("type"),
            "host": rule.take_text("host"),
        }
        for operation in operations:
            acls.add(place, rule.subject, principal=principal, operation=operation, **words)
    acls.add_labels(principal, labels)


def _convert_connector(
    spec: Section, name: str, labels: Mapping[str, str], findings: Findings, acls: AclCollector
) -> None:
    del acls
    config, places = take_connector_config(spec.take_section("config"), name, findings)
    more: dict[str, JsonValue] = {}
    state = spec.take_text("state").upper() or ("PAUSED" if spec.take_text("pause") == "true" else "")
    if state:
        more["state"] = state
    restart = spec.take_section("autoRestart")
    if restart is not None and restart.take_text("enabled") == "true":
        more["restartFailed"] = True
        restart.report("maxRestarts", "kdeclare restarts failed tasks once per apply.")
    spec.report("version", "kdeclare does not select the version of a connector plug-in.")
    for field in ("listOffsets", "alterOffsets"):
        spec.report(field, "Manifests cannot declare the offsets of connectors.")
    other_labels = {key: value for key, value in labels.items() if key != _CLUSTER}
    findings.add(
        build_connector(
            spec.place,
            name,
            config,
            places,
            connect=labels.get(_CLUSTER, ""),
            class_=spec.take_text("class"),
            tasks_max=spec.take_integer("tasksMax"),
            more=more,
            labels=other_labels,
        )
    )
