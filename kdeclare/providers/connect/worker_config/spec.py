"""The spec of ConnectWorkerConfig manifests, and the checks that need no connection to workers."""

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from kdeclare.core.diagnostics import LITERAL_SECRET, Diagnostic, error, warning
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.resources.ignored_changes import ConfigsLifecycle, check_ignored_paths
from kdeclare.core.resources.kind import SpecPath, SpecProblem
from kdeclare.core.resources.raw_text import RawText
from kdeclare.core.secrets.secret_refs import Referenced, is_sensitive_key
from kdeclare.core.units import Duration
from kdeclare.http.urls import HEADER_NAME, explain_url_problem, is_plain_http
from kdeclare.providers.connect.worker_state import WorkerGroup, is_placeholder
from kdeclare.providers.kafka.config.config_value import ConfigValue, Unset, Value, as_secret, to_config_text

RAW_SECRET = "raw-secret"

_CONFIG_FIELD_PREFIX = "configs."

_THIRTY_DAYS_S = 30 * 86400.0
_CONFIG_TOPIC = "Connect's config topic, which the REST API of the workers exposes"
_PLACEHOLDER_HINT = (
    "Use a placeholder of a Connect config provider, such as "
    "${file:/etc/connect/secrets.properties:keystore}."
)


class TlsSpec(BaseModel):
    """TLS settings: PEM files, relative to the project's folder."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    caFile: Annotated[  # noqa: N815
        str | None, Field(description="The CA certificates that verify the workers' certificates.")
    ] = None
    certFile: Annotated[str | None, Field(description="The client certificate.")] = None  # noqa: N815
    keyFile: Annotated[  # noqa: N815
        str | None, Field(description="The private key of the client certificate.")
    ] = None


class WorkerLifecycle(ConfigsLifecycle):
    """The lifecycle options for the settings of workers."""

    refused_options: ClassVar[Mapping[str, str]] = {
        "state": "Workers exist with or without overrides. To delete an override, set it to null in 'config'."
    }


class ConnectWorkerConfigSpec(BaseModel):
    """The ``spec`` of a ConnectWorkerConfig manifest. It has either ``connect`` or ``workers``.

    connect: the name of the Connect cluster in the environment.
    workers: the URLs of all workers.
    config: the overrides by key. The keys must be on the plug-in's whitelist.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    connect: Annotated[
        str | None, Field(description="The name of the Connect cluster in the environment's 'connect'.")
    ] = None
    workers: Annotated[
        list[str],
        Field(description="The URLs of all workers, if the environment does not name the Connect cluster."),
    ] = []
    tls: Annotated[TlsSpec, Field(description="TLS settings, as PEM files.")] = TlsSpec()
    headers: Annotated[
        dict[str, Any],
        RawText(may_be_secret=True),
        Field(
            description="HTTP headers for every request. Use references as values, as in ${env.CONNECT_AUTH}."
        ),
    ] = {}
    config: Annotated[
        dict[str, Any],
        RawText(may_be_secret=True),
        Field(description="Overrides of worker settings, for keys on the plug-in's whitelist."),
    ] = {}
    warnBeforeExpiry: Annotated[  # noqa: N815
        Duration | None,
        Field(
            description="How long before a certificate expires to warn about it, such as 30d (the default)."
        ),
    ] = None
    lifecycle: Annotated[
        WorkerLifecycle,
        Field(description="How to treat settings that kdeclare did not set."),
    ] = WorkerLifecycle()


@dataclass(frozen=True, slots=True)
class WorkerConfigBody:
    """The declared overrides of a group of workers.

    warn_before_s: how many seconds before the expiry of a certificate to warn.
    ignored: the paths of overrides that stay as they are once they have been set.
    """

    group: WorkerGroup
    configs: Mapping[str, ConfigValue] = field(default_factory=dict)
    warn_before_s: float = _THIRTY_DAYS_S
    adopt: bool = False
    ignored: tuple[str, ...] = ()

    @property
    def ignored_keys(self) -> frozenset[str]:
        """The keys of the ignored overrides."""
        return frozenset(path.removeprefix(_CONFIG_FIELD_PREFIX) for path in self.ignored)


def parse_worker_config(
    name: str, spec: ConnectWorkerConfigSpec
) -> tuple[WorkerConfigBody, tuple[SpecProblem, ...]]:
    """Return the body of a spec, and the problems in the spec. Sends no requests to workers."""
    resource = f"ConnectWorkerConfig/{name}"
    problems = [
        *_check_choice(resource, spec),
        *_check_urls(resource, spec.workers),
        *_check_tls(resource, spec.tls),
    ]
    if spec.headers:
        problems += _check_plain_http(resource, spec.workers)
    headers: list[tuple[str, str]] = []
    for header, value in spec.headers.items():
        header_problem = _find_header_problem(header, value)
        if header_problem is not None:
            problems.append(_build_problem(resource, ("headers", header), *header_problem))
        else:
            headers.append((header, value.reference))
    config_values: dict[str, ConfigValue] = {}
    for key, raw in spec.config.items():
        config_value, diagnostics = parse_value(resource, key, raw)
        problems += [SpecProblem(("config", key), item) for item in diagnostics]
        if config_value is not None:
            config_values[key] = config_value
    tls = spec.tls
    urls = tuple(dict.fromkeys(url.rstrip("/") for url in spec.workers))
    group = (
        WorkerGroup(endpoint=spec.connect or "")
        if spec.connect is not None or not urls
        else WorkerGroup(urls, tls.caFile, tls.certFile, tls.keyFile, tuple(headers))
    )
    ignored = spec.lifecycle.ignoreChanges
    declared_paths = [f"{_CONFIG_FIELD_PREFIX}{key}" for key in spec.config]
    problems += check_ignored_paths(resource, ignored, declared_paths, _is_config_path)
    warn_before_s = _THIRTY_DAYS_S if spec.warnBeforeExpiry is None else spec.warnBeforeExpiry
    body = WorkerConfigBody(group, config_values, warn_before_s, spec.lifecycle.adopt, tuple(ignored))
    return body, tuple(problems)


def _is_config_path(path: str) -> bool:
    return path.startswith(_CONFIG_FIELD_PREFIX) and path != _CONFIG_FIELD_PREFIX


def parse_value(resource: str, key: str, raw: object) -> tuple[ConfigValue | None, tuple[Diagnostic, ...]]:
    """Return the declared value of one key, and diagnostics about the value."""
    if raw is None:
        return Unset(), ()
    if isinstance(raw, Mapping | list | tuple):
        detail = f"'{key}' takes a single value, not a list or a mapping."
        return None, (
            error("invalid-config", "Invalid config value", detail, resource=resource, subject=key),
        )
    text = to_config_text(raw)
    if not is_sensitive_key(key) or (is_placeholder(text) and not isinstance(text, Referenced)):
        return Value(str(text)), ()
    secret = as_secret(Value(text))
    return secret, (
        _warn_literal_secret(resource, key) if secret.reference is None else warn_raw_secret(resource, key),
    )


def _check_choice(resource: str, spec: ConnectWorkerConfigSpec) -> Iterator[SpecProblem]:
    """Require exactly one of ``connect`` and ``workers``.

    With ``connect``, the environment contains the workers, the TLS settings and the headers of the cluster,
    so the manifest must not contain them.
    """
    if spec.connect is None and not spec.workers:
        detail = "The manifest names no workers."
        hint = "Set 'connect' to the name of a Connect cluster in the environment, or 'workers' to URLs."
        yield _build_problem(resource, (), detail, hint)
    if spec.connect is None:
        return
    other_fields = {
        "workers": bool(spec.workers),
        "tls": spec.tls != TlsSpec(),
        "headers": bool(spec.headers),
    }
    for name, is_set in other_fields.items():
        if is_set:
            detail = (
                f"'{name}' cannot be combined with 'connect', because the environment contains this setting."
            )
            yield _build_problem(resource, (name,), detail, "Remove one of the two fields.")


def _check_urls(resource: str, urls: list[str]) -> Iterator[SpecProblem]:
    seen_urls: set[str] = set()
    for index, url in enumerate(urls):
        problem_text = explain_url_problem(url)
        if not problem_text and url.rstrip("/") in seen_urls:
            problem_text = f"'{url}' is listed twice."
        if problem_text:
            yield _build_problem(resource, ("workers", index), problem_text)
        seen_urls.add(url.rstrip("/"))


def _check_plain_http(resource: str, urls: list[str]) -> Iterator[SpecProblem]:
    for index, url in enumerate(urls):
        if not explain_url_problem(url) and is_plain_http(url):
            yield SpecProblem(("workers", index), warn_plain_http(url, resource))


def warn_plain_http(url: str, resource: str | None = None) -> Diagnostic:
    """Return the warning that headers, which can contain credentials, are sent without encryption."""
    return warning(
        "plain-http",
        "Secret sent without encryption",
        f"Anyone on the network can read the headers that are sent to {url}.",
        hint="Use an https:// URL.",
        resource=resource,
    )


def _check_tls(resource: str, tls: TlsSpec) -> Iterator[SpecProblem]:
    if tls.keyFile is not None and tls.certFile is None:
        yield _build_problem(
            resource, ("tls", "keyFile"), "'keyFile' is the private key of 'certFile', which is missing."
        )


def _find_header_problem(header: str, value: object) -> tuple[str, str] | None:
    """Return what is wrong with a header, and a hint; None if the header is valid."""
    if not HEADER_NAME.fullmatch(header):
        return f"'{header}' is not a valid name of an HTTP header.", ""
    if not isinstance(value, Referenced):
        hint = "Write ${env.NAME} or ${file.PATH}, after a prefix such as 'Bearer ' if necessary."
        return (
            f"'{header}' has a literal value, which all readers of the manifest can see.",
            hint,
        )
    if not value.isprintable() or not value.isascii():
        return f"The value of '{header}' has characters that are not allowed in HTTP headers.", ""
    return None


def _build_problem(resource: str, path: SpecPath, detail: str, hint: str = "") -> SpecProblem:
    diagnostic = error(
        "invalid-worker-config", "Invalid ConnectWorkerConfig", detail, hint=hint, resource=resource
    )
    return SpecProblem(path, diagnostic)


def warn_raw_secret(resource: str | None, key: str) -> Diagnostic:
    """Return the warning that Connect stores a secret in its config topic in plain text (KIP-1185)."""
    return warning(
        RAW_SECRET,
        "Secret stored in Connect's config topic",
        f"'{key}' is sensitive, and its value will be stored in {_CONFIG_TOPIC}.",
        hint=_PLACEHOLDER_HINT,
        resource=resource,
        subject=key,
    )


def _warn_literal_secret(resource: str, key: str) -> Diagnostic:
    return warning(
        LITERAL_SECRET,
        "Secret in a manifest",
        f"'{key}' is sensitive. Its value is in the manifest, and would also be stored in {_CONFIG_TOPIC}.",
        hint=_PLACEHOLDER_HINT,
        resource=resource,
        subject=key,
    )
