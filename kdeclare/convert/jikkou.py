"""Convert Jikkou's resources: topics, quotas, users, authorizations, connectors and subjects."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from yaml.nodes import MappingNode, SequenceNode

from kdeclare.convert.bindings import AclCollector, build_free_name
from kdeclare.convert.result import ConvertedResource, SpecPath
from kdeclare.convert.settings import (
    Credential,
    add_scram_user,
    build_connector,
    build_quota,
    build_topic,
    parse_schema,
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
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.manifests.syntax.nodes import get_position

_GROUPS = ("kafka.jikkou.io/", "schemaregistry.jikkou.io/", "core.jikkou.io/")
_VERSIONS = ("v1", "v1beta1", "v1beta2")
_CONNECT_CLUSTER = "kafka.jikkou.io/connect-cluster"
_DEFAULT: JsonValue = {"default": True}
_LIMITS = {
    "producerByteRate": "producer_byte_rate",
    "consumerByteRate": "consumer_byte_rate",
    "requestPercentage": "request_percentage",
}
_REASONS = {
    "KafkaConsumerGroup": "Manifests cannot declare offsets. To change them, "
    "run kdeclare group reset-offsets.",
    "KafkaTableRecord": "kdeclare does not write records.",
    "KafkaBroker": "Declare the dynamic settings of brokers in BrokerConfig manifests.",
}


def convert(sources: Sequence[SourceFile], findings: Findings) -> None:
    """Convert the files. Raises KdeclareError if a file contains no Jikkou resource."""
    converter = _Converter(findings)
    for source in sources:
        objects = [item for document in source.documents for item in _unpack(document, findings)]
        if not objects:
            hint = "Pass files with Jikkou resources, after 'jikkou prepare' has rendered their templates."
            raise build_wrong_file_error(source, "Jikkou resources", hint)
        for item in objects:
            converter.add(source, item)
    converter.finish()


@dataclass(frozen=True, slots=True)
class _Object:
    """A Jikkou resource. labels: the labels of the list resource that contains it, if any."""

    version: str
    kind: str
    node: MappingNode
    labels: Mapping[str, str] = field(default_factory=dict)


def _unpack(document: object, findings: Findings) -> Iterator[_Object]:
    """Yield the resources of a document. Items of a list resource get the kind of the list."""
    if not isinstance(document, MappingNode):
        return
    fields = get_fields(document)
    kind, version = get_text(fields.get("kind")), get_text(fields.get("apiVersion"))
    if not kind or not version:
        return
    items = fields.get("items")
    if not kind.endswith("List") or not isinstance(items, SequenceNode):
        yield _Object(version, kind, document)
        return
    section = Section(document, kind, findings)
    section.ignore("apiVersion", "kind", "items")
    metadata = section.take_section("metadata")
    labels = metadata.take_labels("labels") if metadata is not None else {}
    for item in items.value:
        if isinstance(item, MappingNode):
            yield _Object(version, kind.removesuffix("List"), item, labels)
        else:
            findings.report(get_position(item), f"{kind} items", "This item must be a mapping.")


class _Converter:
    """Converts Jikkou's resources.

    Topics and authorizations are converted last, because they can refer to config maps and roles in any file.
    """

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._acls = AclCollector(findings)
        self._config_maps: dict[str, dict[str, JsonValue]] = {}
        self._roles: dict[str, list[Section]] = {}
        self._topics: list[tuple[Section, str, Mapping[str, str]]] = []
        self._authorizations: list[tuple[Section, str, Mapping[str, str]]] = []
        self._quota_names: set[str] = set()

    def add(self, source: SourceFile, item: _Object) -> None:
        """Convert a resource. Report a resource that cannot be converted."""
        version, kind, node = item.version, item.kind, item.node
        fields = get_fields(node)
        name = get_text(get_fields(fields["metadata"]).get("name")) if "metadata" in fields else ""
        subject = f"{kind}/{name}" if name else kind
        place = get_position(node)
        group = next((group for group in _GROUPS if version.startswith(group)), None)
        if group is None:
            self._findings.report(place, subject, f"kdeclare has no equivalent of kind {kind}.")
            return
        if version.removeprefix(group) not in _VERSIONS:
            self._findings.report(place, subject, f"kdeclare does not know the version {version}.")
            return
        section = Section(node, subject, self._findings)
        section.ignore("apiVersion", "kind", "status")
        metadata = section.take_section("metadata")
        labels = {**item.labels, **(metadata.take_labels("labels") if metadata is not None else {})}
        if metadata is not None:
            metadata.ignore("name")
            annotations = metadata.take_section("annotations")
            if annotations is not None:
                annotations.report_rest("kdeclare does not support annotations.")
        if kind == "ConfigMap":
            configs, _ = take_configs(section.take_section("data"))
            self._config_maps[name] = configs
            return
        spec = section.take_section("spec")
        if spec is None:
            section.report_all("The resource has no spec.")
        elif kind == "KafkaTopic":
            self._topics.append((spec, name, labels))
        elif kind == "KafkaPrincipalAuthorization":
            self._authorizations.append((spec, name, labels))
        elif kind == "KafkaPrincipalRole":
            self._roles[name] = spec.take_sections("acls")
        elif kind == "KafkaClientQuota":
            self._convert_quota(spec, labels)
        elif kind == "KafkaUser":
            self._convert_user(spec, name, labels)
        elif kind == "KafkaConnector":
            self._convert_connector(spec, name, labels)
        elif kind == "SchemaRegistrySubject":
            self._convert_subject(source, spec, name, labels)
        else:
            spec.ignore(*spec.keys)
            reason = _REASONS.get(kind, f"kdeclare has no equivalent of kind {kind}.")
            section.report_all(reason)

    def finish(self) -> None:
        """Convert the topics and authorizations, which refer to other resources."""
        for spec, name, labels in self._topics:
            self._convert_topic(spec, name, labels)
        rules = {name: [_read_rule(rule) for rule in role] for name, role in self._roles.items()}
        for spec, principal, labels in self._authorizations:
            self._acls.add_labels(principal, labels)
            for role, place in spec.take_texts("roles"):
                if role not in rules:
                    self._findings.report(
                        place, f"{spec.subject} roles", f"No file declares the role '{role}'."
                    )
                for rule in rules.get(role, ()):
                    self._add_rule(rule, principal)
            for section in spec.take_sections("acls"):
                self._add_rule(_read_rule(section), principal)
        for resource in self._acls.build():
            self._findings.add(resource)

    def _add_rule(self, rule: tuple[Section, list[str], Mapping[str, str]], principal: str) -> None:
        section, operations, words = rule
        for operation in operations:
            self._acls.add(section.place, section.subject, principal=principal, operation=operation, **words)

    def _convert_topic(self, spec: Section, name: str, labels: Mapping[str, str]) -> None:
        configs, places = take_configs(spec.take_section("configs"))
        for reference, place in spec.take_texts("configMapRefs"):
            if reference not in self._config_maps:
                reason = f"No file declares the ConfigMap '{reference}'."
                self._findings.report(place, f"{spec.subject} configMapRefs", reason)
            for key, value in self._config_maps.get(reference, {}).items():
                if key not in configs:
                    configs[key] = value
                    places["configs", key] = place
        self._findings.add(
            build_topic(
                spec,
                name,
                partitions=spec.take_integer("partitions", unset=("-1",)),
                replication_factor=spec.take_integer("replicas", unset=("-1",)),
                configs=configs,
                places=places,
                labels=labels,
            )
        )

    def _convert_quota(self, spec: Section, labels: Mapping[str, str]) -> None:
        type_ = spec.take_text("type")
        entity = spec.take_section("entity")
        user = entity.take_text("user") if entity is not None else ""
        client = entity.take_text("clientId") if entity is not None else ""
        entities: Mapping[str, dict[str, JsonValue]] = {
            "USERS_DEFAULT": {"user": _DEFAULT},
            "USER": {"user": user},
            "USER_CLIENT": {"user": user, "clientId": client},
            "USER_ALL_CLIENTS": {"user": user, "clientId": _DEFAULT},
            "CLIENT": {"clientId": client},
            "CLIENTS_DEFAULT": {"clientId": _DEFAULT},
        }
        if type_ not in entities:
            spec.report_all(f"'{type_}' is not a type of quota.")
            return
        config = spec.take_section("configs")
        values = list(config.take_values()) if config is not None else []
        limits = {_LIMITS.get(key, key): convert_number(value) for key, value, _ in values}
        places: dict[SpecPath, SourcePosition] = {
            ("limits", _LIMITS.get(key, key)): place for key, _, place in values
        }
        name = "-".join(part for part in (type_.lower().replace("_", "-"), user, client) if part)
        name = build_free_name(name, self._quota_names)
        self._findings.add(build_quota(spec.place, name, entities[type_], limits, places, labels))

    def _convert_user(self, spec: Section, name: str, labels: Mapping[str, str]) -> None:
        credentials: dict[str, Credential] = {}
        for authentication in spec.take_sections("authentications"):
            mechanism = authentication.take_text("type").upper().replace("_", "-")
            authentication.ignore("password")
            authentication.report("salt", "kdeclare chooses a new salt for each password.")
            iterations = authentication.take_integer("iterations")
            credentials[mechanism] = Credential(authentication.place, authentication.subject, iterations)
        if credentials:
            add_scram_user(self._findings, name, credentials, labels)
        else:
            spec.report_all("The user has no 'authentications'.")

    def _convert_connector(self, spec: Section, name: str, labels: Mapping[str, str]) -> None:
        config, places = take_connector_config(spec.take_section("config"), name, self._findings)
        state = spec.take_text("state").upper()
        self._findings.add(
            build_connector(
                spec.place,
                name,
                config,
                places,
                connect=labels.get(_CONNECT_CLUSTER, ""),
                class_=spec.take_text("connectorClass"),
                tasks_max=spec.take_integer("tasksMax"),
                more={"state": state} if state else {},
                labels={key: value for key, value in labels.items() if key != _CONNECT_CLUSTER},
            )
        )

    def _convert_subject(
        self, source: SourceFile, spec: Section, name: str, labels: Mapping[str, str]
    ) -> None:
        document: dict[str, JsonValue] = {}
        type_ = spec.take_text("schemaType").upper()
        if type_:
            document["type"] = type_
        place = spec.find_place("schema")
        node = spec.take("schema")
        if isinstance(node, MappingNode):
            path = get_text(get_fields(node).get("$ref"))
            data = source.read_neighbor(path) if path else None
            if data is None:
                reason = (
                    f"'{path}' cannot be read. The path is relative to the converted file. Copy the file "
                    "there and convert again."
                )
                self._findings.report(place, f"{spec.subject} spec.schema", reason)
                spec.ignore(*spec.keys)
                return
            text = data.decode("utf-8", "replace")
        else:
            text = get_text(node)
        document["schema"] = parse_schema(text, type_)
        references: list[JsonValue] = []
        for reference in spec.take_sections("references"):
            item: dict[str, JsonValue] = {
                key: reference.take_text(key) for key in ("name", "subject") if key in reference
            }
            version = reference.take_integer("version", unset=("-1", "latest"))
            references.append(item | ({} if version is None else {"version": version}))
        if references:
            document["references"] = references
        level = spec.take_text("compatibilityLevel")
        if level:
            document["compatibility"] = level.upper()
        registry = spec.take_section("schemaRegistry")
        if registry is not None:
            registry.report("vendor", "Set the registry in the environment of the project file.")
        self._findings.add(ConvertedResource("Schema", name, document, spec.place, labels))


def _read_rule(rule: Section) -> tuple[Section, list[str], Mapping[str, str]]:
    """Return an ACL rule, its operations, and the binding fields that all these operations share."""
    resource = rule.take_section("resource")
    words = {
        "resource_type": resource.take_text("type") if resource is not None else "",
        "name": resource.take_text("pattern") if resource is not None else "",
        "pattern": resource.take_text("patternType") if resource is not None else "",
        "permission": rule.take_text("type"),
        "host": rule.take_text("host"),
    }
    return rule, [text for text, _ in rule.take_texts("operations")], words
