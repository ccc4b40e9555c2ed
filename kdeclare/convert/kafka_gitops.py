"""Convert the desired state files of kafka-gitops: topics, services, users and custom ACLs.

The ACLs of services and users are those that kafka-gitops generates.
"""

from collections.abc import Iterable, Sequence

from yaml.nodes import MappingNode

from kdeclare.convert.bindings import AclCollector
from kdeclare.convert.settings import build_topic, take_configs
from kdeclare.convert.source import Findings, Section, SourceFile, build_wrong_file_error, get_fields
from kdeclare.core.diagnostics import SourcePosition

_FIELDS = frozenset({"settings", "topics", "services", "users", "customServiceAcls", "customUserAcls"})
_STREAMS_TOPICS = "READ WRITE DESCRIBE DELETE CREATE ALTER ALTER_CONFIGS DESCRIBE_CONFIGS"
_ROLES = {
    "reader": (("topic", "*", "READ"), ("group", "*", "READ")),
    "writer": (("topic", "*", "WRITE"),),
    "operator": (
        ("cluster", "", "DESCRIBE"),
        ("topic", "*", "DESCRIBE"),
        ("topic", "*", "DESCRIBE_CONFIGS"),
        ("group", "*", "READ"),
        ("group", "*", "DESCRIBE"),
    ),
}
_CLOUD = "kdeclare does not look up service accounts of Confluent Cloud. Add the principals to the file."


def convert(sources: Sequence[SourceFile], findings: Findings) -> None:
    """Convert the files. Raises KdeclareError if a file is not a desired state file."""
    sections = []
    for source in sources:
        for node in source.documents:
            if not isinstance(node, MappingNode) or not _FIELDS & get_fields(node).keys():
                raise _build_error(source)
            sections.append(Section(node, "file", findings))
        if not source.documents:
            raise _build_error(source)
    converter = _Converter(findings, {source.path for source in sources})
    converter.convert(sections)


def _build_error(source: SourceFile) -> Exception:
    hint = "Pass the state file of kafka-gitops, and the files that its settings refer to."
    return build_wrong_file_error(source, "kafka-gitops topics, services or users", hint)


class _Converter:
    """Converts the sections of all files. The settings in any file apply to the topics in all files."""

    def __init__(self, findings: Findings, paths: set[str]) -> None:
        self._findings = findings
        self._paths = paths
        self._acls = AclCollector(findings)
        self._replication: int | None = None
        self._describes = False
        self._principals: dict[str, str] = {}

    def convert(self, sections: Sequence[Section]) -> None:
        """Convert the sections. Read the settings first, because the other sections depend on them."""
        for section in sections:
            self._read_settings(section.take_section("settings", "settings"))
        for section in sections:
            for name, topic in _take_named(section, "topics", "topic"):
                self._convert_topic(topic, name)
        for section in sections:
            for name, service in _take_named(section, "services", "service"):
                self._convert_service(service, name)
            for name, user in _take_named(section, "users", "user"):
                self._convert_user(user, name)
        for section in sections:
            self._convert_custom(section, "customServiceAcls", "service")
            self._convert_custom(section, "customUserAcls", "user")
        for resource in self._acls.build():
            self._findings.add(resource)

    def _read_settings(self, settings: Section | None) -> None:
        if settings is None:
            return
        topics = settings.take_section("topics")
        if topics is not None:
            defaults = topics.take_section("defaults")
            if defaults is not None:
                self._replication = defaults.take_integer("replication")
            topics.report("blacklist", "kdeclare does not change topics that it does not own.")
        services = settings.take_section("services")
        rights = services.take_section("acls") if services is not None else None
        if rights is not None:
            self._describes = rights.take_text("describeTopicEnabled") == "true"
        files = settings.take_section("files")
        for field, value, place in files.take_values() if files is not None else ():
            if not any(path.endswith(str(value).removeprefix("./")) for path in self._paths):
                reason = f"Convert '{value}' together with this file."
                self._findings.report(place, f"settings files.{field}", reason)
        settings.report("ccloud", _CLOUD)

    def _convert_topic(self, section: Section, name: str) -> None:
        replication = section.take_integer("replication")
        configs, places = take_configs(section.take_section("configs"))
        self._findings.add(
            build_topic(
                section,
                name,
                partitions=section.take_integer("partitions"),
                replication_factor=self._replication if replication is None else replication,
                configs=configs,
                places=places,
            )
        )

    def _convert_service(self, section: Section, name: str) -> None:
        principal = section.take_text("principal")
        self._principals[f"service {name}"] = principal
        type_ = section.take_text("type")
        if not principal:
            section.report_all(_CLOUD)
        elif type_ == "application":
            self._add_application(section, name, principal)
        elif type_ == "kafka-connect":
            self._add_workers(section, name, principal)
        elif type_ == "kafka-streams":
            self._add_streams(section, name, principal)
        else:
            section.report_all(f"'{type_}' is not a type of service.")

    def _add_application(self, section: Section, name: str, principal: str) -> None:
        if self._add_topics(section, principal):
            place = section.find_place("group-id")
            self._add(place, section, principal, "group", section.take_text("group-id") or name, "READ")
        section.report("group-id", "A service that consumes nothing gets no permissions for a group.")

    def _add_topics(self, section: Section, principal: str) -> bool:
        """Add the ACL bindings for topics. Return whether the service consumes from any topic."""
        consumed = section.take_texts("consumes")
        for topic, place in section.take_texts("produces"):
            self._add(place, section, principal, "topic", topic, "WRITE", *self._describe())
        for topic, place in consumed:
            self._add(place, section, principal, "topic", topic, "READ", *self._describe())
        return bool(consumed)

    def _describe(self) -> tuple[str, ...]:
        return ("DESCRIBE",) if self._describes else ()

    def _add_workers(self, section: Section, name: str, principal: str) -> None:
        self._add_topics(section, principal)
        storage = section.take_section("storage-topics")
        for part, default in (("config", "configs"), ("offset", "offsets"), ("status", "status")):
            place = storage.find_place(part) if storage is not None else section.place
            topic = storage.take_text(part) if storage is not None else ""
            topic = topic or f"connect-{default}-{name}"
            self._add(place, section, principal, "topic", topic, "READ", "WRITE")
        self._add(section.place, section, principal, "group", section.take_text("group-id") or name, "READ")
        for connector, rights in _take_named(section, "connectors", f"{section.subject} connector"):
            if self._add_topics(rights, principal):
                self._add(rights.place, rights, principal, "group", f"connect-{connector}", "READ")

    def _add_streams(self, section: Section, name: str, principal: str) -> None:
        self._add_topics(section, principal)
        place = section.find_place("application-id")
        application = section.take_text("application-id") or name
        operations = _STREAMS_TOPICS.split()
        self._add(place, section, principal, "topic", application, *operations, pattern="prefixed")
        self._add(place, section, principal, "group", application, "READ", "DESCRIBE", "DELETE")
        self._add(place, section, principal, "cluster", "", "DESCRIBE_CONFIGS")

    def _convert_user(self, section: Section, name: str) -> None:
        principal = section.take_text("principal")
        self._principals[f"user {name}"] = principal
        if not principal:
            section.report_all(_CLOUD)
            return
        for role, place in section.take_texts("roles"):
            if role.lower() not in _ROLES:
                self._findings.report(place, f"{section.subject} roles", f"'{role}' is not a role.")
            for type_, resource, operation in _ROLES.get(role.lower(), ()):
                self._add(place, section, principal, type_, resource, operation)

    def _convert_custom(self, section: Section, key: str, owner: str) -> None:
        for name, entries in _take_named(section, key, f"{key}"):
            for entry_name, entry in _take_named(entries, "", f"{key} {name}"):
                place = entry.place
                principal = entry.take_text("principal") or self._principals.get(f"{owner} {name}", "")
                self._acls.add(
                    place,
                    f"{key} {name} {entry_name}",
                    principal=principal,
                    resource_type=entry.take_text("type"),
                    operation=entry.take_text("operation"),
                    name=entry.take_text("name"),
                    pattern=entry.take_text("pattern"),
                    permission=entry.take_text("permission"),
                    host=entry.take_text("host"),
                )

    def _add(
        self,
        place: SourcePosition,
        section: Section,
        principal: str,
        resource_type: str,
        name: str,
        *operations: str,
        pattern: str = "literal",
    ) -> None:
        for operation in operations:
            self._acls.add(
                place,
                section.subject,
                principal=principal,
                resource_type=resource_type,
                operation=operation,
                name=name,
                pattern=pattern,
            )


def _take_named(section: Section, key: str, subject: str) -> Iterable[tuple[str, Section]]:
    """Yield the entries of a mapping by name.

    key: the field with the mapping; ``""`` if the section itself is the mapping.
    """
    named = section.take_section(key, subject) if key else section
    if named is None:
        return
    for name in named.keys:
        item = named.take_section(name, f"{subject} {name}")
        if item is not None:
            yield name, item
