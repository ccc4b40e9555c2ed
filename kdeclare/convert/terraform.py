"""Convert Terraform state: the output of ``terraform show -json``, or a state file of version 4.

Resources of the Mongey providers for Kafka and Kafka Connect are converted. Configuration files (``.tf``) are
not read, because only Terraform can evaluate them. The state contains the result.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from yaml.nodes import MappingNode, Node, SequenceNode

from kdeclare.convert.bindings import AclCollector, build_free_name
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
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.manifests.syntax.nodes import get_position

_HINT = "Pass the output of 'terraform show -json', or of 'terraform state pull'."
_STATE_VERSION = "4"
_ENTITIES = {"client-id": "clientId", "user": "user", "ip": "ip"}
_REASONS = {
    "kafka_connect": "Only resources of the Mongey/kafka-connect provider are converted.",
    "confluent_": "Resources of the Confluent Cloud provider are not converted. Run kdeclare import.",
    "aiven_": "Resources of the Aiven provider are not converted. Run kdeclare import.",
    "schemaregistry_": "Run kdeclare import to write manifests for the subjects of a registry.",
}


@dataclass(frozen=True, slots=True)
class _Instance:
    """A resource in the state: its address, its type, and its attributes."""

    address: str
    type: str
    attributes: Node
    is_managed: bool


def convert(sources: Sequence[SourceFile], findings: Findings) -> None:
    """Convert the files. Raises KdeclareError if a file is not a Terraform or OpenTofu state."""
    converter = _Converter(findings)
    for source in sources:
        for instance in _list_instances(source):
            converter.add(instance)
    converter.finish()


def _list_instances(source: SourceFile) -> Iterator[_Instance]:
    document = source.documents[0] if source.documents else None
    fields = {} if document is None else get_fields(document)
    if "format_version" in fields and "values" in fields:
        yield from _list_module(get_fields(fields["values"]).get("root_module"))
    elif "planned_values" in fields:
        raise build_wrong_file_error(source, "a state. It is a plan", _HINT)
    elif "format_version" in fields and "terraform_version" in fields:
        return  # an empty state
    elif get_text(fields.get("version")) == _STATE_VERSION and "resources" in fields:
        yield from _list_raw_state(fields["resources"])
    else:
        raise build_wrong_file_error(source, "a Terraform state of version 4, or its JSON", _HINT)


def _list_module(module: Node | None) -> Iterator[_Instance]:
    """Yield the resources of a module and of its children, as ``terraform show -json`` prints them."""
    fields = {} if module is None else get_fields(module)
    for item in _list_items(fields.get("resources")):
        resource = get_fields(item)
        yield _Instance(
            get_text(resource.get("address")),
            get_text(resource.get("type")),
            resource.get("values", item),
            get_text(resource.get("mode")) != "data",
        )
    for child in _list_items(fields.get("child_modules")):
        yield from _list_module(child)


def _list_raw_state(resources: Node) -> Iterator[_Instance]:
    """Yield the resources of a state file."""
    for item in _list_items(resources):
        resource = get_fields(item)
        module = get_text(resource.get("module"))
        type_ = get_text(resource.get("type"))
        name = f"{type_}.{get_text(resource.get('name'))}"
        for instance in _list_items(resource.get("instances")):
            parts = get_fields(instance)
            key = parts.get("index_key")
            index = "" if key is None else f"[{get_text(key)}]"
            address = f"{module}.{name}{index}" if module else f"{name}{index}"
            yield _Instance(
                address, type_, parts.get("attributes", instance), get_text(resource.get("mode")) != "data"
            )


def _list_items(node: Node | None) -> list[Node]:
    return list(node.value) if isinstance(node, SequenceNode) else []


class _Converter:
    """Converts resource instances. Each principal gets one manifest for bindings, and one for credentials."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._acls = AclCollector(findings)
        self._credentials: dict[str, dict[str, Credential]] = {}
        self._quotas: set[str] = set()
        self._convert_by_type: Mapping[str, Callable[[Section], None]] = {
            "kafka_topic": self._convert_topic,
            "kafka_acl": self._convert_acl,
            "kafka_quota": self._convert_quota,
            "kafka_user_scram_credential": self._convert_credential,
            "kafka-connect_connector": self._convert_connector,
        }

    def add(self, instance: _Instance) -> None:
        """Convert a resource instance. Report an instance that cannot be converted."""
        convert_type = self._convert_by_type.get(instance.type)
        place = get_position(instance.attributes)
        if not instance.is_managed:
            reason = "This is a data source, which Terraform only reads."
            self._findings.report(place, f"data.{instance.address.removeprefix('data.')}", reason)
        elif convert_type is None or not isinstance(instance.attributes, MappingNode):
            default = f"kdeclare has no equivalent of {instance.type}."
            reason = next(
                (text for start, text in _REASONS.items() if instance.type.startswith(start)), default
            )
            self._findings.report(place, instance.address, reason)
        else:
            section = Section(instance.attributes, instance.address, self._findings)
            section.ignore("id", "timeouts")
            convert_type(section)

    def finish(self) -> None:
        """Write the resources that are built from several instances."""
        for user, credentials in self._credentials.items():
            add_scram_user(self._findings, user, credentials)
        for resource in self._acls.build():
            self._findings.add(resource)

    def _convert_topic(self, section: Section) -> None:
        configs, places = take_configs(section.take_section("config"))
        self._findings.add(
            build_topic(
                section,
                section.take_text("name"),
                partitions=section.take_integer("partitions"),
                replication_factor=section.take_integer("replication_factor", unset=("-1",)),
                configs=configs,
                places=places,
            )
        )

    def _convert_acl(self, section: Section) -> None:
        self._acls.add(
            section.place,
            section.subject,
            principal=section.take_text("acl_principal"),
            resource_type=section.take_text("resource_type"),
            operation=section.take_text("acl_operation"),
            name=section.take_text("resource_name"),
            pattern=section.take_text("resource_pattern_type_filter"),
            permission=section.take_text("acl_permission_type"),
            host=section.take_text("acl_host"),
        )

    def _convert_quota(self, section: Section) -> None:
        type_, name = section.take_text("entity_type"), section.take_text("entity_name")
        field = _ENTITIES.get(type_)
        if field is None:
            section.report_all(f"'{type_}' is not a type of quota entity.")
            return
        config = section.take_section("config")
        values = list(config.take_values()) if config is not None else []
        limits = {key: convert_number(value) for key, value, _ in values}
        entity: dict[str, JsonValue] = {field: name or {"default": True}}
        self._findings.add(
            build_quota(
                section.place,
                build_free_name(f"{type_}-{name or 'default'}", self._quotas),
                entity,
                limits,
                {("limits", key): place for key, _, place in values},
            )
        )

    def _convert_credential(self, section: Section) -> None:
        section.ignore("password", "password_wo", "password_wo_version")
        iterations = section.take_integer("scram_iterations")
        credential = Credential(section.place, section.subject, iterations)
        user = section.take_text("username")
        self._credentials.setdefault(user, {})[section.take_text("scram_mechanism").upper()] = credential

    def _convert_connector(self, section: Section) -> None:
        name = section.take_text("name")
        config, places = take_connector_config(section.take_section("config"), name, self._findings)
        secret, secret_places = take_connector_config(
            section.take_section("config_sensitive"), name, self._findings, all_secret=True
        )
        self._findings.add(build_connector(section.place, name, config | secret, places | secret_places))
