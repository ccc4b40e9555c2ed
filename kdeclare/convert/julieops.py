"""Convert topologies of JulieOps: topics, ACLs, quotas, connectors and schemas.

Topic names have JulieOps' default format: context, other attributes, project, topic and data type, separated
by dots. The ACLs are those that JulieOps generates with its default settings.
"""

from collections.abc import Mapping, Sequence

from yaml.nodes import MappingNode

from kdeclare.convert.bindings import AclCollector, build_free_name
from kdeclare.convert.result import ConvertedResource, SpecPath
from kdeclare.convert.settings import (
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
)
from kdeclare.core.diagnostics import SourcePosition
from kdeclare.core.jsontypes import JsonValue
from kdeclare.manifests.syntax.nodes import compose

_OWN_FIELDS = ("projects", "context", "platform", "special_topics")
_CONNECT_TOPICS = (
    ("status_topic", "connect-status"),
    ("offset_topic", "connect-offsets"),
    ("configs_topic", "connect-configs"),
)
_KSQL = "kdeclare does not manage ksqlDB."
_RBAC = "kdeclare does not manage role-based access control of Confluent Platform. Write Acl manifests."
_QUOTA_KEYS = ("producer_byte_rate", "consumer_byte_rate", "request_percentage")


def convert(sources: Sequence[SourceFile], findings: Findings) -> None:
    """Convert topologies. Raises KdeclareError if a file contains neither topologies nor topic plans."""
    converter = _Converter(findings)
    topologies: list[tuple[SourceFile, MappingNode]] = []
    for source in sources:
        found = False
        for node in source.documents:
            fields = get_fields(node)
            if isinstance(node, MappingNode) and "plans" in fields and "context" not in fields:
                converter.read_plans(Section(node, "plans", findings))
                found = True
            elif isinstance(node, MappingNode) and "context" in fields:
                topologies.append((source, node))
                found = True
        if not found:
            hint = "Pass topology files, and the file with the plans that they refer to."
            raise build_wrong_file_error(source, "a topology with a 'context'", hint)
    for source, node in topologies:
        converter.convert_topology(source, node)
    converter.finish()


class _Converter:
    """Converts topologies, and collects the ACL bindings of all of them."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._acls = AclCollector(findings)
        self._plans: dict[str, dict[str, JsonValue]] = {}
        self._quota_names: set[str] = set()

    def read_plans(self, section: Section) -> None:
        """Read topic plans, which are named sets of topic configs that topics refer to."""
        plans = section.take_section("plans")
        for name in plans.keys if plans is not None else ():
            plan = plans.take_section(name, f"plan {name}") if plans is not None else None
            if plan is not None:
                plan.ignore("alias")
                self._plans[name] = take_configs(plan.take_section("config"))[0]

    def finish(self) -> None:
        """Add the Acl resources with the collected bindings."""
        for resource in self._acls.build():
            self._findings.add(resource)

    def convert_topology(self, source: SourceFile, node: MappingNode) -> None:
        """Convert a topology.

        The names of its topics start with the values of its attributes, in the order of the file.
        """
        section = Section(node, "topology", self._findings)
        context = section.take_text("context")
        others = [section.take_text(key) for key in section.keys if key not in _OWN_FIELDS]
        for project in section.take_sections("projects"):
            name = project.take_text("name")
            self._convert_project(source, project, ".".join((context, *others, name)))
        for topic in section.take_sections("special_topics"):
            self._convert_topic(source, topic, "", [], [])
        self._convert_platform(section.take_section("platform"))

    def _convert_project(self, source: SourceFile, project: Section, prefix: str) -> None:
        consumers = project.take_sections("consumers")
        producers = project.take_sections("producers")
        for topic in project.take_sections("topics"):
            self._convert_topic(source, topic, f"{prefix}.", consumers, producers)
        for user in (*consumers, *producers):
            _ignore_user_fields(user)
        for stream in project.take_sections("streams"):
            self._convert_stream(stream, prefix)
        self._convert_connectors(source, project)
        project.report("ksql", _KSQL)
        project.report("rbac", _RBAC)
        project.report("schemas", _RBAC)
        for key in project.keys:
            project.report(
                key,
                "Custom roles are defined in a separate file, which kdeclare does not read. "
                "Write Acl manifests.",
            )

    def _convert_topic(
        self,
        source: SourceFile,
        topic: Section,
        prefix: str,
        consumers: Sequence[Section],
        producers: Sequence[Section],
    ) -> None:
        data_type = topic.take_text("dataType")
        name = f"{prefix}{topic.take_text('name')}" + (f".{data_type}" if data_type else "")
        topic.rename(f"topic {name}")
        configs, places = take_configs(topic.take_section("config"))
        plan_place = topic.find_place("plan")
        plan = topic.take_text("plan")
        if plan and plan not in self._plans:
            reason = f"No file declares the plan '{plan}'. Pass the file with the plans."
            self._findings.report(plan_place, f"{topic.subject} plan", reason)
        for key, value in self._plans.get(plan, {}).items():
            if key not in configs:
                configs[key] = value
                places["configs", key] = plan_place
        partitions = self._take_number(topic, "num.partitions", configs, places)
        factor = self._take_number(topic, "replication.factor", configs, places)
        labels = topic.take_labels("metadata")
        topic.report(
            "subject.name.strategy",
            "The subject names follow TopicNameStrategy, whatever strategy this field names.",
        )
        self._convert_schemas(source, topic, name)
        own_consumers, own_producers = topic.take_sections("consumers"), topic.take_sections("producers")
        for user in (*consumers, *own_consumers):
            self._add_consumer(user, name)
        for user in (*producers, *own_producers):
            self._add_producer(user, name)
        for user in (*own_consumers, *own_producers):
            _ignore_user_fields(user)
        self._findings.add(
            build_topic(
                topic,
                name,
                partitions=partitions,
                replication_factor=factor,
                configs=configs,
                places=places,
                labels=labels,
            )
        )

    def _take_number(
        self,
        topic: Section,
        key: str,
        configs: dict[str, JsonValue],
        places: Mapping[SpecPath, SourcePosition],
    ) -> int | None:
        """Remove a config with an integer value, such as ``num.partitions``, and return the value."""
        value = configs.pop(key, None)
        if value is not None and not isinstance(value, int):
            reason = f"'{value}' is not a whole number."
            self._findings.report(places["configs", key], f"{topic.subject} config.{key}", reason)
        return value if isinstance(value, int) else None

    def _add_consumer(self, user: Section, topic: str) -> None:
        group = user.peek_text("group") or "*"
        self._add_rights(user, "topic", topic, "DESCRIBE", "READ")
        self._add_rights(user, "group", group, "READ")

    def _add_producer(self, user: Section, topic: str) -> None:
        self._add_rights(user, "topic", topic, "DESCRIBE", "WRITE")
        transactional_id = user.peek_text("transactionId")
        if transactional_id:
            self._add_rights(user, "transactionalId", transactional_id, "DESCRIBE", "WRITE")
        if transactional_id or "idempotence" in user:
            self._add_rights(user, "cluster", "", "IDEMPOTENT_WRITE")

    def _convert_stream(self, stream: Section, prefix: str) -> None:
        application = stream.peek_text("applicationId") or prefix
        self._add_topics(stream)
        self._add_rights(stream, "topic", f"{application}*", "ALL")
        self._add_rights(stream, "group", f"{application}*", "READ")
        if stream.peek_text("exactlyOnce") == "true":
            self._add_rights(stream, "transactionalId", f"{application}*", "WRITE", "DESCRIBE")
        stream.ignore("applicationId", "exactlyOnce")
        _ignore_user_fields(stream)

    def _add_topics(self, user: Section) -> None:
        topics = user.take_section("topics")
        for key, operation in (("read", "READ"), ("write", "WRITE")):
            for topic, place in topics.take_texts(key) if topics is not None else ():
                self._add_rights(user, "topic", topic, operation, place=place)

    def _convert_connectors(self, source: SourceFile, project: Section) -> None:
        node = project.peek("connectors")
        if isinstance(node, MappingNode):
            section = project.take_section("connectors")
            users = section.take_sections("access_control") if section is not None else []
            for key in ("artefacts", "artifacts"):
                for artefact in section.take_sections(key) if section is not None else ():
                    self._convert_artefact(source, artefact)
        else:
            users = project.take_sections("connectors")
        for user in users:
            for field, default in _CONNECT_TOPICS:
                place = user.find_place(field)
                self._add_rights(
                    user, "topic", user.take_text(field) or default, "READ", "WRITE", place=place
                )
            self._add_rights(user, "cluster", "", "CREATE")
            self._add_rights(user, "group", user.take_text("group") or "connect-cluster", "READ")
            self._add_topics(user)
            user.report("connectors", _RBAC)
            user.report("cluster_id", _RBAC)
            _ignore_user_fields(user)

    def _convert_artefact(self, source: SourceFile, artefact: Section) -> None:
        place = artefact.place
        name, path = artefact.take_text("name"), artefact.take_text("path")
        artefact.rename(f"connector {name}")
        server = artefact.take_text("server")
        artefact.ignore("hash")
        data = source.read_neighbor(path)
        nodes = [] if data is None else list(compose(path, data, []))
        if len(nodes) != 1 or not isinstance(nodes[0], MappingNode):
            reason = (
                f"'{path}' does not exist relative to the converted file, or is not JSON. Copy or correct it "
                "and convert again."
            )
            self._findings.report(place, artefact.subject, reason)
            return
        config = Section(nodes[0], f"Connector/{name}", self._findings)
        inner = config.take_section("config") if "config" in config else config
        values, places = take_connector_config(inner, name, self._findings)
        self._findings.add(build_connector(place, name, values, places, connect=server))

    def _convert_schemas(self, source: SourceFile, topic: Section, name: str) -> None:
        node = topic.peek("schemas")
        if isinstance(node, MappingNode):
            single = topic.take_section("schemas")
            schemas = [single] if single is not None else []
        else:
            schemas = topic.take_sections("schemas")
        for part in schemas[:1]:
            for side in ("key", "value"):
                self._convert_schema(source, part, side, f"{name}-{side}")
        for part in schemas[1:]:
            part.report_all("A topic has one schema for its keys and one for its values.")

    def _convert_schema(self, source: SourceFile, part: Section, side: str, subject: str) -> None:
        place = part.find_place(f"{side}.schema.file")
        path = part.take_text(f"{side}.schema.file")
        type_ = part.take_text(f"{side}.format").upper()
        level = part.take_text(f"{side}.compatibility").upper()
        if not path:
            return
        data = source.read_neighbor(path)
        if data is None:
            reason = (
                f"'{path}' cannot be read. The path is relative to the converted file. Copy the file "
                "there and convert again."
            )
            self._findings.report(place, f"Schema/{subject}", reason)
            return
        spec: dict[str, JsonValue] = {"type": type_} if type_ else {}
        spec["schema"] = parse_schema(data.decode("utf-8", "replace"), type_)
        if level:
            spec["compatibility"] = level
        self._findings.add(ConvertedResource("Schema", subject, spec, place))

    def _convert_platform(self, platform: Section | None) -> None:
        if platform is None:
            return
        kafka = platform.take_section("kafka")
        for quota in kafka.take_sections("quotas") if kafka is not None else ():
            self._convert_quota(quota)
        for key in ("schema_registry", "control_center", "ksql", "kafka_connect"):
            platform.report(
                key,
                "No permissions are generated for platform components. Write an Acl manifest for each "
                "component.",
            )
        if kafka is not None:
            kafka.report("rbac", _RBAC)

    def _convert_quota(self, quota: Section) -> None:
        principal = quota.take_text("principal")
        quota.rename(f"quota {principal}")
        limits: dict[str, JsonValue] = {}
        places: dict[SpecPath, SourcePosition] = {}
        for key in _QUOTA_KEYS:
            place = quota.find_place(key)
            text = quota.take_text(key)
            if text:
                limits[key] = convert_number(text)
                places["limits", key] = place
        name = build_free_name(f"user-{principal.removeprefix('User:') or 'default'}", self._quota_names)
        if principal.startswith("User:"):
            reason = (
                f"JulieOps sets the quota for a user named '{principal}', a name that no client has. The "
                "manifest sets the quota for the user name without the prefix 'User:'."
            )
            self._findings.report(quota.place, quota.subject, reason)
        entity: Mapping[str, JsonValue] = {"user": principal.removeprefix("User:") or {"default": True}}
        self._findings.add(build_quota(quota.place, name, entity, limits, places))

    def _add_rights(
        self,
        user: Section,
        resource_type: str,
        name: str,
        *operations: str,
        place: SourcePosition | None = None,
    ) -> None:
        is_prefix = len(name) > 1 and name.endswith("*")
        for operation in operations:
            self._acls.add(
                place or user.place,
                user.subject,
                principal=user.peek_text("principal"),
                resource_type=resource_type,
                operation=operation,
                name=name[:-1] if is_prefix else name,
                pattern="prefixed" if is_prefix else "literal",
            )


def _ignore_user_fields(user: Section) -> None:
    """Mark the fields of a producer or consumer as read, after all topics have used them."""
    user.ignore("principal", "group", "transactionId", "idempotence")
    user.report(
        "metadata",
        "An Acl manifest declares all permissions of a principal. It cannot contain the metadata of only one "
        "of them.",
    )
