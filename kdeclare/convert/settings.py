"""Build resources that several tools can declare: topics, quotas, SCRAM users and connectors."""

import json
import re
from collections.abc import Mapping

from kdeclare.convert.result import ConvertedResource, Reference, SpecPath
from kdeclare.convert.source import Findings, Section, convert_number
from kdeclare.core.diagnostics import SourcePosition
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue

_SECRET = re.compile(
    r"password|passphrase|secret|token|credential|jaas|api\.?key|private\.?key", re.IGNORECASE
)


def take_configs(section: Section | None) -> tuple[dict[str, JsonValue], dict[SpecPath, SourcePosition]]:
    """Return the configs of a topic, and the positions of their keys. A null value means no override."""
    configs: dict[str, JsonValue] = {}
    places: dict[SpecPath, SourcePosition] = {}
    for key, value, place in section.take_values() if section is not None else ():
        configs[key] = convert_number(value)
        places["configs", key] = place
    return configs, places


def build_topic(
    section: Section,
    name: str,
    *,
    partitions: int | None,
    replication_factor: int | None,
    configs: Mapping[str, JsonValue],
    places: Mapping[SpecPath, SourcePosition],
    labels: Mapping[str, str] | None = None,
    more: Mapping[str, JsonValue] | None = None,
) -> ConvertedResource:
    """Return a Topic. ``partitions`` and ``replication_factor`` are None if the broker chooses them."""
    spec: dict[str, JsonValue] = {}
    if partitions is not None:
        spec["partitions"] = partitions
    if replication_factor is not None:
        spec["replicationFactor"] = replication_factor
    spec |= more or {}
    if configs:
        spec["configs"] = dict(configs)
    return ConvertedResource("Topic", name, spec, section.place, labels or {}, places)


def build_quota(
    place: SourcePosition,
    name: str,
    entity: Mapping[str, JsonValue],
    limits: Mapping[str, JsonValue],
    places: Mapping[SpecPath, SourcePosition],
    labels: Mapping[str, str] | None = None,
) -> ConvertedResource:
    """Return a ClientQuota."""
    spec: dict[str, JsonValue] = {"entity": dict(entity), "limits": dict(limits)}
    return ConvertedResource("ClientQuota", name, spec, place, labels or {}, places)


def build_variable_name(*parts: str) -> str:
    """Build the name of an environment variable from parts, such as a connector name and a config key."""
    name = re.sub(r"[^A-Z0-9]+", "_", "_".join(parts).upper()).strip("_")
    return f"_{name}" if name[:1].isdigit() else name


@dataclass(frozen=True, slots=True)
class Credential:
    """The password of a user for one SCRAM mechanism.

    subject: the name of the password in reports. iterations: None if not declared.
    """

    place: SourcePosition
    subject: str
    iterations: int | None = None


def add_scram_user(
    findings: Findings,
    user: str,
    credentials: Mapping[str, Credential],
    labels: Mapping[str, str] | None = None,
) -> None:
    """Add a ScramUser whose passwords are references to environment variables, and report each variable.

    credentials: the passwords by SCRAM mechanism.
    """
    mechanisms: dict[str, JsonValue] = {}
    for mechanism, credential in credentials.items():
        parts = (user, mechanism) if len(credentials) > 1 else (user,)
        variable = f"{build_variable_name(*parts)}_PASSWORD"
        values: dict[str, JsonValue] = {"password": Reference(f"${{env.{variable}}}")}
        if credential.iterations is not None:
            values["iterations"] = credential.iterations
        mechanisms[mechanism] = values
        reason = f"Passwords are not copied. Set the environment variable {variable}."
        findings.report(credential.place, credential.subject, reason)
    place = next(iter(credentials.values())).place
    findings.add(ConvertedResource("ScramUser", user, {"mechanisms": mechanisms}, place, labels or {}))


def take_connector_config(
    section: Section | None, connector: str, findings: Findings, *, all_secret: bool = False
) -> tuple[dict[str, JsonValue], dict[SpecPath, SourcePosition]]:
    """Return the config of a connector. Secrets become references to environment variables, and are reported.

    Placeholders of Connect's config providers (``${file:…}``) are kept. all_secret: whether all values are
    secrets.
    """
    config: dict[str, JsonValue] = {}
    places: dict[SpecPath, SourcePosition] = {}
    for key, value, place in section.take_values() if section is not None else ():
        places["config", key] = place
        is_placeholder = isinstance(value, str) and value.startswith("${") and value.endswith("}")
        if (all_secret or _SECRET.search(key)) and not is_placeholder and value is not None:
            variable = build_variable_name(connector, key)
            config[key] = Reference(f"${{env.{variable}}}")
            findings.report(
                place,
                f"Connector/{connector} config.{key}",
                f"Secrets are not copied. Set the environment variable {variable}.",
            )
        else:
            config[key] = convert_number(value)
    return config, places


def build_connector(
    place: SourcePosition,
    name: str,
    config: Mapping[str, JsonValue],
    places: Mapping[SpecPath, SourcePosition],
    *,
    connect: str = "",
    class_: str = "",
    tasks_max: int | None = None,
    more: Mapping[str, JsonValue] | None = None,
    labels: Mapping[str, str] | None = None,
) -> ConvertedResource:
    """Return a Connector. If the class or the number of tasks is not given, take it from the config."""
    rest = dict(config)
    declared_class = rest.pop("connector.class", None)
    declared_tasks = rest.pop("tasks.max", None)
    rest.pop("name", None)
    spec: dict[str, JsonValue] = {"connect": connect} if connect else {}
    spec["class"] = class_ or str(declared_class or "")
    tasks = tasks_max if tasks_max is not None else declared_tasks
    if tasks is not None:
        spec["tasksMax"] = tasks
    if rest:
        spec["config"] = rest
    return ConvertedResource("Connector", name, spec | dict(more or {}), place, labels or {}, places)


def parse_schema(text: str, schema_type: str) -> JsonValue:
    """Parse a schema that is JSON, so that the manifest is readable. Return any other schema unchanged."""
    if schema_type == "PROTOBUF":
        return text
    try:
        document: JsonValue = json.loads(text)
    except ValueError:
        return text
    return document
