"""Change quotas and SCRAM credentials ad hoc, with the settings of kafka-configs."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from kdeclare.app.adhoc.ownership import ResourceOwnership, load_ownership
from kdeclare.app.adhoc.references import resolve_references
from kdeclare.app.adhoc.run import AdhocCommand, AdhocOptions, AdhocRequest, run_adhoc
from kdeclare.app.apply import ApplyOptions
from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import LITERAL_SECRET, Diagnostic, error, warning
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.suggestions import format_alternatives, format_suggestion
from kdeclare.manifests.syntax.substitution import UnresolvedReference
from kdeclare.providers.kafka.client_quota.diff import QuotaRecord
from kdeclare.providers.kafka.client_quota.entity import (
    LIMITS,
    QuotaEntity,
    list_allowed_limits,
    parse_limit,
)
from kdeclare.providers.kafka.client_quota.kind import hash_entity, make_manifest_name
from kdeclare.providers.kafka.client_quota.spec import ClientQuotaBody
from kdeclare.providers.kafka.commands.clients.client_query import ClientEntityQuery
from kdeclare.providers.kafka.scram_user.credential import MIN_ITERATIONS, Mechanism
from kdeclare.providers.kafka.scram_user.fleet import SCRAM_USER
from kdeclare.providers.kafka.scram_user.spec import (
    CredentialSpec,
    MechanismsSpec,
    ScramUserSpec,
    parse_scram_user,
)
from kdeclare.report.adhoc import AdhocLabels, AdhocResult

QUOTA = "ClientQuota"
WORDING = AdhocLabels(look_hint="Check the result with 'kdeclare config describe'.")
MECHANISMS = frozenset(mechanism.value for mechanism in Mechanism)

_CREDENTIAL = re.compile(r"(?:iterations=(?P<iterations>-?[0-9]+),)?password=(?P<password>.*)", re.DOTALL)
"""The format of a credential in kafka-configs (ConfigCommand.parseScramUserConfig). The password is last."""
_DEFAULT_ITERATIONS = "-1"
"""The value of ``iterations`` that means the default number of iterations in kafka-configs."""

BodyBuilder = Callable[[str], tuple[object | None, tuple[Diagnostic, ...]]]
"""A function that returns the body of a resource and diagnostics. If there are errors, the body is None."""


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """The settings that the command line sets and deletes."""

    added: Mapping[str, str]
    deleted: frozenset[str] = frozenset()

    @property
    def keys(self) -> frozenset[str]:
        """The keys of all settings that the command line sets or deletes."""
        return frozenset(self.added) | self.deleted

    @property
    def is_about_credentials(self) -> bool:
        """Whether at least one of the keys is a SCRAM mechanism."""
        return not MECHANISMS.isdisjoint(self.keys)


def explain_wrong_settings(query: ClientEntityQuery, settings: ClientSettings) -> str | None:
    """Return a sentence about a problem with the settings, or None if there is no problem.

    Problems that only a cluster can detect are not found.
    """
    if settings.is_about_credentials:
        return _explain_wrong_credentials(query, settings)
    is_for_ips = query.list_entities()[0].is_ip
    allowed = list_allowed_limits(is_for_ips=is_for_ips)
    for key in sorted(settings.keys):
        if key in allowed:
            continue
        if key in LIMITS:
            noun = "IP addresses" if is_for_ips else "users and client ids"
            return f"'{key}' is not a limit of {noun}; use {format_alternatives(allowed)}."
        known = allowed if query.find_users() is None else [*allowed, *sorted(MECHANISMS)]
        hint = format_suggestion(key, known) or f"Use {format_alternatives(known)}."
        return f"'{key}' does not exist. {hint}"
    return None


def _explain_wrong_credentials(query: ClientEntityQuery, settings: ClientSettings) -> str | None:
    if query.find_users() is None or None in next(iter(query.names.values())):
        return "SCRAM credentials belong to users: select the users with --user or --entity-type users."
    if not settings.keys <= MECHANISMS:
        return "quotas and SCRAM credentials cannot be changed in the same command; use two commands."
    return None


def change_credentials(
    workspace: Workspace,
    users: Sequence[str],
    settings: ClientSettings,
    options: AdhocOptions,
    apply_options: ApplyOptions,
) -> AdhocResult | None:
    """Set and delete SCRAM credentials of users. Return None if the user declined. Raises KdeclareError."""

    def build_body(user: str) -> tuple[object | None, tuple[Diagnostic, ...]]:
        resource = f"{SCRAM_USER}/{user}"
        # Resolve the references in values one by one, because a password can contain any character.
        parsed = {key: _parse_credential(resource, key, text) for key, text in settings.added.items()}
        problems = [item for item in parsed.values() if isinstance(item, Diagnostic)]
        if problems:
            return None, tuple(problems)
        specs = {
            key: CredentialSpec.model_validate(resolve_references(workspace, item, resource))
            for key, item in parsed.items()
            if isinstance(item, Mapping)
        }
        body, spec_problems = parse_scram_user(
            user, ScramUserSpec(mechanisms=MechanismsSpec.model_validate(specs))
        )
        diagnostics = tuple(
            _adapt_diagnostic(problem.diagnostic)
            for problem in spec_problems
            if specs or problem.diagnostic.code != "no-credentials"
        )
        body = replace(body, absent=frozenset(map(Mechanism, settings.deleted)), is_requested=True)
        return body, diagnostics

    resources = {ResourceId(SCRAM_USER, user): build_body for user in users}
    return _change(workspace, lambda _: resources, options, apply_options)


def change_quotas(
    workspace: Workspace,
    entities: Sequence[QuotaEntity],
    settings: ClientSettings,
    options: AdhocOptions,
    apply_options: ApplyOptions,
) -> AdhocResult | None:
    """Set and remove limits of entities. Return None if the user declined. Raises KdeclareError.

    If an entity belongs to a declared or owned resource, the plan shows the change under the id of that
    resource.
    """

    def make_builder(entity: QuotaEntity) -> BodyBuilder:
        def build_body(name: str) -> tuple[object | None, tuple[Diagnostic, ...]]:
            resource = f"{QUOTA}/{name}"
            limits: dict[str, int | float | None] = dict.fromkeys(settings.deleted)
            problems: list[Diagnostic] = []
            for key, text in resolve_references(workspace, settings.added, resource).items():
                try:
                    limits[key] = parse_limit(key, str(text))
                except ValueError as reason:
                    problems.append(_report_bad_value(resource, key, f"'{key}' {reason}."))
            body = ClientQuotaBody(entity, limits, is_partial=True)
            return (None, tuple(problems)) if problems else (body, ())

        return build_body

    def list_resources(ownership: ResourceOwnership) -> Mapping[ResourceId, BodyBuilder]:
        names = find_quota_names(ownership, entities)
        return {ResourceId(QUOTA, names[entity]): make_builder(entity) for entity in entities}

    return _change(workspace, list_resources, options, apply_options)


def find_quota_names(ownership: ResourceOwnership, entities: Iterable[QuotaEntity]) -> dict[QuotaEntity, str]:
    """Return, for each entity, the name of the declared or owned resource that it belongs to.

    If there is no such resource, return a name that is derived from the entity.
    """
    names: dict[QuotaEntity, str] = {}
    for text, record in ownership.owned.items():
        if isinstance(record, QuotaRecord):
            names[record.quota_entity] = ResourceId.parse(text).name
    for item in ownership.declared.values():
        if item.id.kind == QUOTA:
            names[item.get_body(ClientQuotaBody).entity] = item.id.name
    used = set(names.values())
    for entity in entities:
        if entity not in names:
            name = make_manifest_name(entity)
            names[entity] = f"{name}-{hash_entity(entity)}" if name in used else name
    return names


def _change(
    workspace: Workspace,
    list_resources: Callable[[ResourceOwnership], Mapping[ResourceId, BodyBuilder]],
    options: AdhocOptions,
    apply_options: ApplyOptions,
) -> AdhocResult | None:
    def build_request() -> AdhocRequest:
        desired: list[DesiredResource] = []
        failed: dict[str, tuple[Diagnostic, ...]] = {}
        diagnostics: list[Diagnostic] = []
        for resource, build_body in list_resources(load_ownership(workspace)).items():
            try:
                body, problems = build_body(resource.name)
            except UnresolvedReference as problem:
                body, problems = None, (problem.diagnostic,)
            errors = tuple(d for d in problems if d.is_error)
            if errors or body is None:
                failed[str(resource)] = errors
                continue
            diagnostics += problems
            desired.append(DesiredResource(resource, body))
        return AdhocRequest(tuple(desired), failed=failed, diagnostics=tuple(diagnostics))

    return run_adhoc(
        workspace, AdhocCommand(lambda _: build_request(), words=WORDING), options, apply_options
    )


def _parse_credential(resource: str, mechanism: str, text: str) -> Mapping[str, object] | Diagnostic:
    """Return the iterations and the password of ``iterations=8192,password=…``.

    Return a diagnostic if the value is invalid.
    """
    match = _CREDENTIAL.fullmatch(text)
    if match is None:
        return _report_bad_value(
            resource, mechanism, f"The value of '{mechanism}' is not a credential.", _FORM_HINT
        )
    number = match["iterations"]
    iterations = MIN_ITERATIONS if number in (None, _DEFAULT_ITERATIONS) else int(number)
    return {"iterations": iterations, "password": match["password"]}


_FORM_HINT = (
    "Write [iterations=N,password=PASSWORD] or [password=PASSWORD], with a reference such as ${env.NAME} as "
    "the password."
)


def _report_bad_value(resource: str, key: str, detail: str, hint: str = "") -> Diagnostic:
    return error("bad-value", "Value not allowed", detail, hint=hint, resource=resource, subject=key)


def _adapt_diagnostic(problem: Diagnostic) -> Diagnostic:
    """Convert a diagnostic about a manifest to a diagnostic about the command line."""
    if problem.code == LITERAL_SECRET:
        return warning(
            LITERAL_SECRET,
            "Password on the command line",
            f"The command line contains the password of {problem.resource} for {problem.subject} in plain "
            "text. Other users of this machine can see the password while the command runs, and your "
            "shell may store the password in its history.",
            hint="Pass '${env.NAME}' or '${file.PATH}' as the password, in quotes.",
            resource=problem.resource,
            subject=problem.subject,
        )
    return replace(problem, hint="") if problem.code == "bad-value" else problem
