"""The ``spec`` of a Connector manifest, and the checks that need no connection to a Connect cluster."""

import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt

from kdeclare.core.diagnostics import LITERAL_SECRET, error, warning
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import (
    JsonObject,
    JsonValue,
    as_bool,
    as_int_or_none,
    as_object,
    as_text,
    as_text_or_none,
    as_texts,
)
from kdeclare.core.resources.declared_absence import ResourceState
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.ignored_changes import IgnoredPaths, check_ignored_paths
from kdeclare.core.resources.kind import NAME as NAME_PATH
from kdeclare.core.resources.kind import SpecPath, SpecProblem
from kdeclare.core.resources.raw_text import RawText
from kdeclare.core.secrets.secret_refs import Secret
from kdeclare.providers.connect.client.connectors_port import is_addressable
from kdeclare.providers.connect.connector.settings import (
    CLASS,
    CONNECTOR,
    FIELD_KEYS,
    NAME,
    STATE_PATH,
    TASKS_MAX,
    Setting,
    bind_setting,
    find_key,
    find_path,
    is_config_path,
    parse_setting,
)
from kdeclare.providers.kafka.config.config_value import to_config_text

_CLOSED = ConfigDict(extra="forbid", frozen=True, defer_build=True)

StateName = Literal["RUNNING", "PAUSED", "STOPPED"]
"""The states that a manifest can declare."""
RestartName = Literal["all", "failed"]
"""The scope of an ad hoc restart: the connector and all tasks, or only the failed ones."""


class ConnectorLifecycle(BaseModel):
    """The lifecycle options of a connector."""

    model_config = _CLOSED
    preventDestroy: Annotated[  # noqa: N815
        bool, Field(description="Whether to refuse to delete this connector.")
    ] = False
    adopt: Annotated[
        bool,
        Field(
            description="Whether to adopt and change a connector that differs from the manifest and was "
            "never applied."
        ),
    ] = False
    ignoreChanges: IgnoredPaths = ()  # noqa: N815
    state: ResourceState = "present"


class ConnectorSpec(BaseModel):
    """The ``spec`` of a Connector manifest."""

    model_config = _CLOSED
    connect: Annotated[
        str | None,
        Field(
            description="The name of the Connect cluster in the environment (connect.NAME). Can be omitted "
            "if the environment has exactly one Connect cluster."
        ),
    ] = None
    name: Annotated[
        str | None, Field(description="The name of the connector; by default, metadata.name.")
    ] = None
    class_: Annotated[
        str,
        Field(alias="class", min_length=1, description="The connector class, by full name or alias."),
    ]
    tasksMax: Annotated[  # noqa: N815
        StrictInt | None,
        Field(description="The maximum number of tasks (tasks.max). Connect's default is 1."),
    ] = None
    config: Annotated[
        dict[str, Any],
        RawText(may_be_secret=True),
        Field(
            description="The whole config of the connector, except name, connector.class and tasks.max. Keys "
            "that are not declared are removed from the connector. Values from ${env.NAME} and ${file.PATH} "
            "are secrets; use ${var.NAME} for other values."
        ),
    ] = {}
    state: Annotated[
        StateName | None,
        Field(
            description="The state of the connector: RUNNING, PAUSED or STOPPED. If omitted, kdeclare does "
            "not manage the state."
        ),
    ] = None
    needs: Annotated[
        list[str],
        Field(
            description="Ids of resources, such as Schema/orders-value, that must be created before the "
            "connector and deleted after it. Topics in the config are found automatically."
        ),
    ] = []
    ignore: Annotated[
        list[str],
        Field(
            description="Config keys that other software adds to the connector. kdeclare keeps these keys."
        ),
    ] = []
    restartFailed: Annotated[  # noqa: N815
        bool, Field(description="Whether apply restarts a connector that failed or has failed tasks.")
    ] = False
    deleteOffsets: Annotated[  # noqa: N815
        bool,
        Field(
            description="Whether to delete the offsets as well when the connector is deleted. Otherwise, a "
            "later connector with the same name continues from these offsets."
        ),
    ] = False
    lifecycle: Annotated[
        ConnectorLifecycle,
        Field(
            description="Protection from deletion, adoption of an existing connector, or deletion of the "
            "connector."
        ),
    ] = ConnectorLifecycle()


@dataclass(frozen=True, slots=True)
class ConnectorBody:
    """A declared connector.

    endpoint: the name of the Connect cluster; None for the only Connect cluster of the environment.
    config: the declared config without the keys in `FIELD_KEYS`.
    state: None if the state is not managed.
    is_partial: whether an ad hoc command requests only ``state`` or ``restart``, so that the config is kept.
    restart: the restart that an ad hoc command requests.
    ignored: the paths of the fields that kdeclare leaves alone after it has created the connector.
    """

    name: str
    class_name: str
    config: Mapping[str, Setting] = field(default_factory=dict)
    endpoint: str | None = None
    tasks_max: int | None = None
    state: StateName | None = None
    needs: tuple[ResourceId, ...] = ()
    ignore: frozenset[str] = frozenset()
    restart_failed: bool = False
    delete_offsets: bool = False
    prevent_destroy: bool = False
    adopt: bool = False
    is_partial: bool = False
    restart: RestartName | None = None
    ignored: tuple[str, ...] = ()

    @property
    def ignored_keys(self) -> frozenset[str]:
        """The config keys of the ignored fields."""
        return frozenset(key for path in self.ignored if (key := find_key(path)) is not None)

    @property
    def whole_config(self) -> Mapping[str, Setting]:
        """The whole config of the connector, without ``name``, in a stable order."""
        fields: dict[str, Setting] = {CLASS: self.class_name}
        if self.tasks_max is not None:
            fields[TASKS_MAX] = str(self.tasks_max)
        return {**fields, **dict(sorted(self.config.items()))}


def parse_connector(name: str, spec: ConnectorSpec) -> tuple[ConnectorBody, tuple[SpecProblem, ...]]:
    """Return the body of a spec, and the problems that can be found without a Connect cluster."""
    resource = f"{CONNECTOR}/{name}"
    connector = name if spec.name is None else spec.name
    problems = list(_check_name(resource, connector, ("name",) if spec.name is not None else NAME_PATH))
    if spec.connect == "":
        problems.append(_build_problem(resource, ("connect",), "'connect' is empty.", "Write a name."))
    config: dict[str, Setting] = {}
    for key, raw in spec.config.items():
        if raw is None:
            continue
        if isinstance(raw, Mapping | list | tuple):
            problems.append(_report_nested_value(resource, key))
        elif key in FIELD_KEYS:
            problems += _check_field_key(resource, key, str(raw), spec, connector)
        else:
            config[key] = parse_setting(key, to_config_text(raw))
            problems += _warn_literal_secret(resource, key, config[key])
    problems += _check_ignored(resource, spec)
    ignored = spec.lifecycle.ignoreChanges
    known_paths = [STATE_PATH, *map(find_path, (CLASS, TASKS_MAX, *config))]
    problems += check_ignored_paths(resource, ignored, known_paths, is_config_path)
    needs, need_problems = _parse_needs(resource, spec.needs)
    body = ConnectorBody(
        connector,
        spec.class_,
        config,
        spec.connect,
        spec.tasksMax,
        spec.state,
        needs,
        frozenset(spec.ignore),
        spec.restartFailed,
        spec.deleteOffsets,
        spec.lifecycle.preventDestroy,
        spec.lifecycle.adopt,
        ignored=tuple(ignored),
    )
    return body, (*problems, *need_problems)


def dump_connector(body: ConnectorBody) -> JsonObject:
    """Return the body as plain data. For a secret, the data contains only the reference and the hash."""
    document: dict[str, JsonValue] = {
        "name": body.name,
        "class": body.class_name,
        "config": {key: v.stated if isinstance(v, Secret) else v for key, v in body.config.items()},
        "connect": body.endpoint,
        "tasksMax": body.tasks_max,
        "state": body.state,
        "needs": list(map(str, body.needs)),
        "ignore": sorted(body.ignore),
    }
    flags = {
        "restartFailed": body.restart_failed,
        "deleteOffsets": body.delete_offsets,
        "preventDestroy": body.prevent_destroy,
        "adopt": body.adopt,
    }
    document |= {"ignoreChanges": list(body.ignored)} if body.ignored else {}
    return document | {name: True for name, is_set in flags.items() if is_set}


def bind_connector(json: JsonObject) -> ConnectorBody:
    """Restore a body from the result of `dump_connector`. Secrets in the body have hashes, but no values."""
    return ConnectorBody(
        as_text(json["name"]),
        as_text(json["class"]),
        {key: bind_setting(value) for key, value in as_object(json["config"]).items()},
        as_text_or_none(json["connect"]),
        as_int_or_none(json["tasksMax"]),
        bind_state(json["state"]),
        tuple(map(ResourceId.parse, as_texts(json["needs"]))),
        frozenset(as_texts(json["ignore"])),
        as_bool(json.get("restartFailed", False)),
        as_bool(json.get("deleteOffsets", False)),
        as_bool(json.get("preventDestroy", False)),
        as_bool(json.get("adopt", False)),
        ignored=as_texts(json.get("ignoreChanges", ())),
    )


def bind_state(value: JsonValue) -> StateName | None:
    """Return the state if a manifest can declare it; None for any other value."""
    if value == "RUNNING":
        return "RUNNING"
    if value == "PAUSED":
        return "PAUSED"
    return "STOPPED" if value == "STOPPED" else None


def _check_name(resource: str, connector: str, path: SpecPath) -> Iterator[SpecProblem]:
    if not connector:
        yield _build_problem(resource, path, "The name of the connector is empty.", "Write a name.")
    elif not is_addressable(connector):
        yield _build_problem(
            resource,
            path,
            f"Connect could create a connector named '{connector}', but never change or delete it.",
            "Choose a name that contains no slash, backslash or percent sign and is not '.' or '..'.",
        )
    elif any(unicodedata.category(letter) == "Cc" for letter in connector) or connector != connector.strip():
        yield _build_problem(
            resource,
            path,
            f"{connector!r} contains control characters, or starts or ends with white space.",
            "Choose a name without control characters and without surrounding white space.",
        )


def _check_field_key(
    resource: str, key: str, text: str, spec: ConnectorSpec, connector: str
) -> Iterator[SpecProblem]:
    fields = {
        NAME: ("spec.name", connector),
        CLASS: ("spec.class", spec.class_),
        TASKS_MAX: ("spec.tasksMax", None if spec.tasksMax is None else str(spec.tasksMax)),
    }
    field_name, stated = fields[key]
    if stated == text:
        return
    reason = (
        f"which belongs to {field_name}" if stated is None else f"which contradicts {field_name} ({stated})"
    )
    yield _build_problem(
        resource,
        ("config", key),
        f"'config' contains '{key}', {reason}.",
        f"Remove '{key}' from 'config', and declare {field_name}.",
        key,
    )


def _check_ignored(resource: str, spec: ConnectorSpec) -> Iterator[SpecProblem]:
    for index, key in enumerate(spec.ignore):
        if key in FIELD_KEYS:
            yield _build_problem(
                resource,
                ("ignore", index),
                f"'{key}' cannot be ignored.",
                "Remove the key from 'ignore'.",
                key,
            )
        elif spec.config.get(key) is not None:
            yield _build_problem(
                resource,
                ("ignore", index),
                f"'{key}' is declared in 'config' and also listed in 'ignore'.",
                "Remove the key from 'config' or from 'ignore'.",
                key,
            )


def _parse_needs(resource: str, texts: list[str]) -> tuple[tuple[ResourceId, ...], list[SpecProblem]]:
    needs: list[ResourceId] = []
    problems: list[SpecProblem] = []
    for index, text in enumerate(texts):
        kind, slash, name = text.partition("/")
        if not (kind and slash and name):
            problems.append(
                _build_problem(
                    resource,
                    ("needs", index),
                    f"'{text}' is not the id of a resource.",
                    "Write Kind/name, such as Schema/orders-value.",
                )
            )
        elif text == resource:
            problems.append(
                _build_problem(
                    resource,
                    ("needs", index),
                    "'needs' contains the connector itself.",
                    "Remove the connector from its own 'needs'.",
                )
            )
        else:
            needs.append(ResourceId(kind, name))
    return tuple(dict.fromkeys(needs)), problems


def _report_nested_value(resource: str, key: str) -> SpecProblem:
    return _build_problem(
        resource,
        ("config", key),
        f"'{key}' is a list or a mapping, but Connect accepts only strings.",
        "Write a single value. Separate the elements of a list with commas.",
        key,
    )


def _warn_literal_secret(resource: str, key: str, setting: Setting) -> Iterator[SpecProblem]:
    if not isinstance(setting, Secret) or setting.reference is not None:
        return
    diagnostic = warning(
        LITERAL_SECRET,
        "Secret in a manifest",
        f"'{key}' is sensitive, but the manifest contains its value in plain text. Everyone who can read the "
        "manifest or the config of the connector can read the value. Plans with this value cannot be saved.",
        hint="Use a placeholder of a Connect config provider, such as ${file:/etc/connect/secrets:db}, or at "
        "least a reference, such as ${env.NAME} or ${file.PATH}.",
        resource=resource,
        subject=key,
    )
    yield SpecProblem(("config", key), diagnostic)


def _build_problem(
    resource: str, path: SpecPath, detail: str, hint: str, subject: str | None = None
) -> SpecProblem:
    return SpecProblem(
        path,
        error(
            "invalid-connector", "Invalid Connector", detail, hint=hint, resource=resource, subject=subject
        ),
    )
