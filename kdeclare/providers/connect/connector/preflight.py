"""Have Connect validate the configs of connectors while a plan is made."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from kdeclare.core.diagnostics import Diagnostic, error, warning
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.secrets.secret_refs import SENSITIVE_MASK, Secret
from kdeclare.core.suggestions import format_suggestion
from kdeclare.core.units import format_names
from kdeclare.providers.connect.client.connectors_port import (
    ConfigValidation,
    ConnectCluster,
    find_class,
)
from kdeclare.providers.connect.client.port import NOT_AUTHORIZED
from kdeclare.providers.connect.connector.settings import CLASS, FIELD_KEYS, NAME, Setting, find_path
from kdeclare.providers.connect.connector.status import describe_fault

REJECTED = "connector-rejected"
"""The code of errors that Connect reports about a config."""

_MAX_THREADS = 4
"""The maximum number of concurrent validations.

A validation is slow if the connector connects to other systems.
"""

_OPEN_PREFIXES = (
    "transforms.",
    "predicates.",
    "key.converter.",
    "value.converter.",
    "header.converter.",
    "producer.override.",
    "consumer.override.",
    "admin.override.",
    "topic.creation.",
)
"""The prefixes of config keys that other components define, such as transforms, converters and clients.

Workers do not list all of these keys.
"""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A config that a plan would send to a Connect cluster.

    config: the whole config without ``name``. It contains the values of secrets.
    kept: the live values of keys that the plan does not manage.
    """

    resource: ResourceId
    cluster: ConnectCluster
    connector: str
    config: Mapping[str, Setting]
    kept: Mapping[str, str]

    def build_request(self) -> Mapping[str, str]:
        """Return the config to validate, with the values of secrets."""
        declared = {key: v.value if isinstance(v, Secret) else v for key, v in self.config.items()}
        return {**self.kept, **declared, NAME: self.connector}


def validate_proposals(proposals: Sequence[Proposal]) -> tuple[Diagnostic, ...]:
    """Return the errors and warnings about configs. Changes nothing."""
    if not proposals:
        return ()
    with ThreadPoolExecutor(min(_MAX_THREADS, len(proposals)), thread_name_prefix="validate") as pool:
        results = list(pool.map(_validate_proposal, proposals))
    return tuple(diagnostic for diagnostics in results for diagnostic in diagnostics)


def _validate_proposal(proposal: Proposal) -> Sequence[Diagnostic]:
    try:
        validation = proposal.cluster.validate_config(proposal.connector, proposal.build_request())
    except Fault as fault:
        return [_explain_fault(proposal, fault)]
    return [*_list_errors(proposal, validation), *_list_unknown_keys(proposal, validation)]


def _list_errors(proposal: Proposal, validation: ConfigValidation) -> Iterator[Diagnostic]:
    for key, messages in validation.errors.items():
        for message in dict.fromkeys(messages):
            text = " ".join(_hide_secrets(proposal, message).split()).rstrip(".")
            yield _build_rejection(proposal, f"{text}.", "name" if key == NAME else find_path(key))


def _list_unknown_keys(proposal: Proposal, validation: ConfigValidation) -> Iterator[Diagnostic]:
    """Yield warnings about declared keys that the class does not define. Workers ignore such keys.

    Some connectors accept any keys. Therefore, only a key that is probably misspelled gets its own warning.
    All other keys are listed in one warning.
    """
    known_keys = validation.definitions.keys()
    if not known_keys:
        return
    unknown_keys = sorted(proposal.config.keys() - known_keys - FIELD_KEYS)
    unknown_keys = [key for key in unknown_keys if not key.startswith(_OPEN_PREFIXES)]
    suggestions = {key: format_suggestion(key, known_keys) for key in unknown_keys}
    for key, suggestion in suggestions.items():
        if suggestion:
            yield _warn_unknown_keys(proposal, [key], suggestion)
    other_keys = [key for key, suggestion in suggestions.items() if not suggestion]
    if other_keys:
        hint = "Check the keys in the documentation of the class."
        yield _warn_unknown_keys(proposal, other_keys, hint)


def _warn_unknown_keys(proposal: Proposal, keys: Sequence[str], hint: str) -> Diagnostic:
    path = find_path(keys[0]) if len(keys) == 1 else "config"
    return warning(
        "unknown-connector-key",
        "Unknown config key of a connector",
        f"{proposal.resource}: {proposal.config[CLASS]} does not define {format_names(keys)}. "
        "Most connectors ignore such keys.",
        hint=hint,
        resource=str(proposal.resource),
        subject=f"spec.{path}",
    )


def _explain_fault(proposal: Proposal, fault: Fault) -> Diagnostic:
    """Return an error if Connect rejects the config, or a warning if Connect could not check it."""
    if fault.kind is not FaultKind.REFUSED or fault.error == NOT_AUTHORIZED:
        return warning(
            "connector-not-validated",
            "Connect did not check the config of a connector",
            f"{proposal.resource}: {_hide_secrets(proposal, describe_fault(fault))} ({fault.error}).",
            hint="Plan again to repeat the check. Without this check, an invalid config is rejected only "
            "during apply.",
            resource=str(proposal.resource),
        )
    class_name = str(proposal.config[CLASS])
    plugins = _find_plugin_names(proposal.cluster, class_name)
    if plugins is not None:
        detail = f"{proposal.resource}: the workers have no connector class '{class_name}'."
        hint = format_suggestion(class_name, plugins) or "Install the class on all workers, and restart them."
        return _build_rejection(proposal, detail, find_path(CLASS), hint)
    return _build_rejection(proposal, f"{_hide_secrets(proposal, describe_fault(fault))}.", "config")


def _find_plugin_names(cluster: ConnectCluster, class_name: str) -> Collection[str] | None:
    """Return the names and aliases of the installed classes if they do not include ``class_name``.

    Return None if they do, or if the classes cannot be read.
    """
    try:
        plugins = cluster.list_plugins()
    except Fault:
        return None
    if find_class(plugins, class_name) is not None:
        return None
    return {name for plugin in plugins for name in (plugin.name, *plugin.aliases)}


def _build_rejection(proposal: Proposal, detail: str, path: str, hint: str = "") -> Diagnostic:
    return error(
        REJECTED,
        "Connect rejects the config of a connector",
        detail,
        hint=hint or "Correct the manifest. Nothing was changed.",
        resource=str(proposal.resource),
        subject=f"spec.{path}",
    )


def _hide_secrets(proposal: Proposal, text: str) -> str:
    """Remove all secrets of the config from a message, including very short secrets."""
    for value in _list_secret_values(proposal.config.values()):
        text = text.replace(value, SENSITIVE_MASK)
    return text


def _list_secret_values(settings: Iterable[Setting]) -> Sequence[str]:
    values = {setting.value for setting in settings if isinstance(setting, Secret) and setting.value}
    return sorted(values, key=len, reverse=True)
