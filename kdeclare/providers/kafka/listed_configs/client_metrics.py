"""Kind `ClientMetrics`: a subscription to metrics that clients push to the brokers (KIP-714)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from kdeclare.core.diagnostics import error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import as_text, as_texts
from kdeclare.core.parts import LiveState, PlanContext
from kdeclare.core.policies.policy_fields import PolicyField, PolicyWords
from kdeclare.core.resources.changes import Action, Change, FieldChange, FieldOp, Risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.ignored_changes import check_ignored_paths
from kdeclare.core.resources.kind import DesiredResource, Difference, SpecPath, SpecProblem, narrow
from kdeclare.core.resources.manifest_capabilities import DeclaredFields, ManifestEdits, SettingEdit
from kdeclare.core.resources.manifest_text import scalar
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.core.resources.raw_text import RawText
from kdeclare.core.units import format_amount, parse_amount
from kdeclare.providers.kafka.config.config_diff import LiveConfigs, find_override
from kdeclare.providers.kafka.config.config_record import Applied, ConfigsRecord
from kdeclare.providers.kafka.config.config_value import ConfigValue, Unset, Value
from kdeclare.providers.kafka.config.configs_kind import ConfigsBody
from kdeclare.providers.kafka.ids import ConfigScope
from kdeclare.providers.kafka.listed_configs.kind import ListedConfigsKind, ListedLifecycle
from kdeclare.providers.kafka.policies.declared_topics import list_scope_key_types
from kdeclare.providers.kafka.risks import with_risk

METRICS, MATCH, INTERVAL = "metrics", "match", "interval.ms"
"""The config keys of a client metrics subscription."""
_SPEC_FIELDS = {METRICS: "metrics", MATCH: "match", INTERVAL: "interval"}
_MIN_INTERVAL_MS, _MAX_INTERVAL_MS = 100, 3_600_000
"""The limits on the push interval in milliseconds (org.apache.kafka.server.metrics.ClientMetricsConfigs)."""
_CLOSED = ConfigDict(extra="forbid", frozen=True, defer_build=True)

Pattern = Annotated[str | None, RawText()]


class ClientMatchSpec(BaseModel):
    """Regular expressions by client attribute. Only clients that match all of them push metrics."""

    model_config = _CLOSED
    client_id: Annotated[Pattern, Field(description="The client.id of the client.")] = None
    client_instance_id: Annotated[
        Pattern, Field(description="The client instance id, which a broker assigns to the client.")
    ] = None
    client_software_name: Annotated[
        Pattern, Field(description="The name of the client library, such as apache-kafka-java.")
    ] = None
    client_software_version: Annotated[
        Pattern, Field(description="The version of the client library, such as 4\\.3\\..*.")
    ] = None
    client_source_address: Annotated[
        Pattern, Field(description="The IP address that the client connects from.")
    ] = None
    client_source_port: Annotated[Pattern, Field(description="The port that the client connects from.")] = (
        None
    )


class ClientMetricsSpec(BaseModel):
    """The ``spec`` of a ClientMetrics manifest."""

    model_config = _CLOSED
    metrics: Annotated[
        list[str] | None,
        RawText(),
        Field(
            min_length=1,
            description="Prefixes of metric names, such as org.apache.kafka.producer.; ['*'] selects all "
            "metrics.",
        ),
    ] = None
    match: Annotated[
        ClientMatchSpec | None,
        Field(description="Which clients push these metrics; by default, all clients."),
    ] = None
    interval: Annotated[
        str | None,
        RawText(),
        Field(
            description="How often clients push these metrics, such as 30s; between 100ms and 1h. Kafka's "
            "default is 5min.",
            json_schema_extra={"examples": ["30s", "5min"]},
        ),
    ] = None
    unmanagedConfigs: Annotated[  # noqa: N815
        Literal["keep", "remove"],
        Field(
            description="How to treat fields that are neither declared nor owned by kdeclare: keep (the "
            "default) or remove."
        ),
    ] = "keep"
    lifecycle: Annotated[
        ListedLifecycle,
        Field(
            description="How to treat fields that kdeclare did not set, and whether to delete the "
            "subscription."
        ),
    ] = ListedLifecycle()


@dataclass(frozen=True, slots=True)
class ClientMetricsRecord(ConfigsRecord):
    """The owned configs of one client metrics subscription."""


class ClientMetricsKind(ListedConfigsKind):
    """Client metrics subscriptions. ``metadata.name`` is the name of the subscription.

    A subscription exists while at least one of its configs is set.
    """

    name = "ClientMetrics"
    spec: type[BaseModel] = ClientMetricsSpec
    record: type[OwnedRecord] = ClientMetricsRecord
    config_scope = ConfigScope.CLIENT_METRICS
    noun, plural = "client metrics subscription", "client metrics subscriptions"
    policy_words = PolicyWords(
        {
            "configs": PolicyField(
                dict[str, str], keys=partial(list_scope_key_types, ConfigScope.CLIENT_METRICS)
            )
        }
    )

    def parse(self, name: str, spec: BaseModel) -> tuple[ConfigsBody, tuple[SpecProblem, ...]]:
        """See `Kind`."""
        spec = narrow(spec, ClientMetricsSpec)
        resource = f"{self.name}/{name}"
        match = {} if spec.match is None else spec.match.model_dump(exclude_none=True)
        problems = [*_check_metrics(resource, spec.metrics or ()), *_check_match(resource, match)]
        configs: dict[str, ConfigValue] = {METRICS: Value(tuple(spec.metrics))} if spec.metrics else {}
        if match:
            configs[MATCH] = Value(tuple(f"{attribute}={match[attribute]}" for attribute in sorted(match)))
        for key, field in _SPEC_FIELDS.items():
            if field in spec.model_fields_set and getattr(spec, field) is None:
                configs[key] = Unset()
        if spec.interval is not None:
            milliseconds = parse_amount(INTERVAL, spec.interval)
            if milliseconds is None or not _MIN_INTERVAL_MS <= milliseconds <= _MAX_INTERVAL_MS:
                reason = f"takes a duration between 100ms and 1h, not '{spec.interval}'."
                problems.append(
                    _report_invalid(resource, ("interval",), reason, "Write a value such as 30s.")
                )
            configs[INTERVAL] = Value(str(milliseconds))
        problems += check_ignored_paths(resource, spec.lifecycle.ignoreChanges, _SPEC_FIELDS.values())
        keys = {field: key for key, field in _SPEC_FIELDS.items()}
        ignored = tuple(f"configs.{keys.get(path, path)}" for path in spec.lifecycle.ignoreChanges)
        body = ConfigsBody(configs, spec.unmanagedConfigs == "remove", spec.lifecycle.adopt, ignored=ignored)
        return body, tuple(problems)

    def diff(
        self,
        resource: ResourceId,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
        context: PlanContext,
    ) -> Difference:
        """See `Kind`. Spaces and repeated attributes in the live ``match`` are not differences."""
        if desired is not None:
            desired = replace(desired, body=self._with_live_match(desired, live))
        return super().diff(resource, desired, live, owned, context)

    def _with_live_match(self, desired: DesiredResource, live: LiveState) -> ConfigsBody:
        """Return the declared body, but with the live ``match`` if it is equivalent to the declared one."""
        body, name = desired.get_body(ConfigsBody), desired.id.name
        declared = body.configs.get(MATCH)
        override = find_override(self.build_live_configs(name, self.find_entries(name, live) or {}), MATCH)
        if not isinstance(declared, Value) or override is None:
            return body
        if _parse_match(declared.value) != _parse_match(override):
            return body
        return replace(body, configs={**body.configs, MATCH: Value(_to_elements(override))})

    def make_record(self, configs: Mapping[str, Applied]) -> ClientMetricsRecord:
        """See `ConfigsKind`."""
        return ClientMetricsRecord(configs)

    def assess_field(self, action: Action, field: FieldChange) -> FieldChange:
        """Rate the field change as safe: a subscription affects only which metrics clients report."""
        return with_risk(field, (Risk.SAFE, ""))

    def locate_field(self, path: str) -> Sequence[SpecPath]:
        """Return the path in ``spec`` at which a manifest declares a config of the subscription."""
        return ((_SPEC_FIELDS.get(path.removeprefix("configs."), path),),)

    def find_edits(self, change: Change, declared: DeclaredFields) -> ManifestEdits:
        """Return one edit for each changed field of the spec, and for each changed attribute of ``match``."""
        edits: list[SettingEdit] = []
        for field in change.fields:
            key = field.path.removeprefix("configs.")
            if key == MATCH:
                edits += _edit_match(field)
            elif key == INTERVAL:
                after = None if field.after is None else _format_interval(as_text(field.after))
                edits.append(SettingEdit(("interval",), (replace(field, after=after),)))
            else:
                edits.append(SettingEdit((_SPEC_FIELDS[key],), (field,)))
        return ManifestEdits(tuple(edits))

    def render_spec_lines(self, change: Change) -> Sequence[str]:
        """Return the lines of the ``spec`` in a new manifest."""
        return _render_spec({field.path.removeprefix("configs."): field.after for field in change.fields})

    def is_same_value(self, path: SpecPath, text: str, value: object) -> bool:
        """Return whether two strings represent the same interval.

        Strings that are not durations must be equal.
        """
        if path != ("interval",) or not isinstance(value, str):
            return text == value
        return parse_amount(INTERVAL, text) == parse_amount(INTERVAL, value)

    def convert_value(self, path: SpecPath, text: str) -> str | None:
        """See `ConvertsValues`. Only the interval is converted, from a duration to milliseconds."""
        milliseconds = parse_amount(INTERVAL, text) if path == ("interval",) else None
        return None if milliseconds is None else str(milliseconds)

    def render_spec(self, live_configs: LiveConfigs, keys: Sequence[str]) -> list[str]:
        """See `ListedConfigsKind`."""
        return _render_spec({key: find_override(live_configs, key) for key in keys})

    def name_permission(self, name: str) -> str:
        """See `ListedConfigsKind`."""
        return "the DescribeConfigs permission on the cluster"


def _render_spec(configs: Mapping[str, object]) -> list[str]:
    """Return the lines of a manifest's ``spec``. configs: the overrides, in the format that plans use."""
    metrics = configs.get(METRICS)
    lines = [f"metrics: [{', '.join(map(scalar, _to_elements(metrics)))}]"] if metrics else []
    match = _parse_match(configs.get(MATCH))
    if match:
        lines += ["match:", *(f"  {attribute}: {scalar(pattern)}" for attribute, pattern in match.items())]
    interval = configs.get(INTERVAL)
    if isinstance(interval, str):
        lines.append(f"interval: {_format_interval(interval)}")
    return lines


def _to_elements(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    return tuple(value.split(",")) if isinstance(value, str) else as_texts(value)  # type: ignore[arg-type]


def _format_interval(milliseconds: str) -> str:
    """Convert a number of milliseconds to the notation that manifests use for an interval."""
    number = int(milliseconds)
    text = format_amount(INTERVAL, number).replace(" ", "").replace(",", "")
    return text if parse_amount(INTERVAL, text) == number else f"{number}ms"


def _edit_match(field: FieldChange) -> Iterator[SettingEdit]:
    """Yield one edit for each attribute of ``match`` that the change sets or removes."""
    before, after = _parse_match(field.before), _parse_match(field.after)
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        if old != new:
            op = FieldOp.DELETE if new is None else FieldOp.SET
            yield SettingEdit(("match", name), (FieldChange(field.path, op, old, new),))


def _parse_match(value: object) -> Mapping[str, str]:
    """Return the regular expressions in the value of ``match``, by client attribute."""
    pairs = (element.partition("=") for element in _to_elements(value))
    return {attribute.strip(): pattern.strip() for attribute, _, pattern in pairs}


def _check_metrics(resource: str, metrics: Sequence[str]) -> Iterator[SpecProblem]:
    for number, prefix in enumerate(metrics):
        if not prefix or "," in prefix or prefix != prefix.strip():
            reason = (
                f"has the prefix '{prefix}', which is empty, contains a comma, or starts or ends with a "
                "space."
            )
            yield _report_invalid(
                resource,
                ("metrics", number),
                reason,
                "Write each prefix as a separate list element, without surrounding spaces.",
            )
    if "*" in metrics and len(metrics) > 1:
        reason = "contains other prefixes in addition to '*', which selects all metrics."
        yield _report_invalid(resource, ("metrics",), reason, "Remove either '*' or the other prefixes.")


def _check_match(resource: str, match: Mapping[str, str]) -> Iterator[SpecProblem]:
    """Check that patterns contain no characters at which Kafka splits them."""
    for attribute, pattern in match.items():
        if not pattern.strip() or not {",", "="}.isdisjoint(pattern):
            reason = f"has the pattern '{pattern}', which is empty or contains ',' or '='."
            hint = "Use a regular expression without ',' or '=': Kafka splits patterns at these characters."
            yield _report_invalid(resource, ("match", attribute), reason, hint)


def _report_invalid(resource: str, path: SpecPath, reason: str, hint: str) -> SpecProblem:
    name = ".".join(str(step) for step in path if isinstance(step, str))
    diagnostic = error(
        "invalid-config",
        "Invalid config value",
        f"'{name}' {reason}",
        hint=hint,
        resource=resource,
        subject=name,
    )
    return SpecProblem(path, diagnostic)
