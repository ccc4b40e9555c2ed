"""The ``spec`` of a ScramUser manifest."""

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt

from kdeclare.core.diagnostics import LITERAL_SECRET, error, warning
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import (
    JsonObject,
    as_bool,
    as_int_or_none,
    as_object,
    as_text,
    as_text_or_none,
    as_texts,
)
from kdeclare.core.resources.declared_absence import ResourceState, is_declared_absent
from kdeclare.core.resources.ignored_changes import IgnoredPaths, check_ignored_paths
from kdeclare.core.resources.kind import SpecPath, SpecProblem
from kdeclare.core.secrets.secret_refs import Secret, SecretText
from kdeclare.providers.kafka.scram_user.credential import MAX_ITERATIONS, MIN_ITERATIONS, Mechanism

MECHANISM_FIELD_PREFIX = "mechanisms."
"""The prefix of the paths of credentials in plans."""

_CLOSED = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class CredentialSpec(BaseModel):
    """The password of a user for one mechanism."""

    model_config = _CLOSED
    password: Annotated[
        SecretText,
        Field(description="The password, as a reference such as ${env.NAME} or ${file.PATH}."),
    ]
    iterations: Annotated[
        StrictInt | None,
        Field(
            description=f"Number of PBKDF2 iterations, {MIN_ITERATIONS} to {MAX_ITERATIONS}. By default, "
            "kdeclare chooses a different number for each new password, to detect passwords that were set by "
            "other clients."
        ),
    ] = None


class MechanismsSpec(BaseModel):
    """The credentials of a user by SCRAM mechanism."""

    model_config = _CLOSED
    sha_256: Annotated[
        CredentialSpec | None,
        Field(alias=Mechanism.SHA_256.value, description="The credential for SCRAM-SHA-256."),
    ] = None
    sha_512: Annotated[
        CredentialSpec | None,
        Field(alias=Mechanism.SHA_512.value, description="The credential for SCRAM-SHA-512."),
    ] = None


class ScramLifecycle(BaseModel):
    """The lifecycle options of a user."""

    model_config = _CLOSED
    preventDestroy: Annotated[  # noqa: N815
        bool, Field(description="Whether to refuse to delete the credentials of this user.")
    ] = False
    adopt: Annotated[
        bool,
        Field(
            description="Whether to adopt and change credentials that differ from the manifest and were "
            "never applied."
        ),
    ] = False
    ignoreChanges: IgnoredPaths = ()  # noqa: N815
    state: ResourceState = "present"


class ScramUserSpec(BaseModel):
    """The ``spec`` of a ScramUser manifest."""

    model_config = _CLOSED
    mechanisms: Annotated[
        MechanismsSpec,
        Field(
            description="Credentials by mechanism. Each mechanism can have a different password. Required, "
            "unless lifecycle.state is absent."
        ),
    ] = MechanismsSpec()
    verify: Annotated[
        Literal["state", "login"],
        Field(
            description="How to detect passwords that other clients set: state (the default) compares the "
            "iterations of each credential with the iterations that kdeclare set; login also logs in with "
            "each declared password."
        ),
    ] = "state"
    lifecycle: Annotated[
        ScramLifecycle,
        Field(description="Protection from deletion, and adoption of credentials that other clients set."),
    ] = ScramLifecycle()


@dataclass(frozen=True, slots=True)
class DeclaredCredential:
    """The declared password of one mechanism.

    iterations: the declared number, or None if kdeclare chooses the number.
    """

    password: Secret
    iterations: int | None = None


@dataclass(frozen=True, slots=True)
class ScramUserBody:
    """The declared credentials of one user.

    verify_login: whether plans log in with the declared passwords.
    absent: mechanisms whose credentials must not exist. Only ad hoc commands use this field.
    is_requested: whether to set every password, even if the credential looks unchanged. Only ad hoc commands
        use this field.
    ignored: the paths of credentials that kdeclare leaves alone once they have been set.
    """

    mechanisms: Mapping[Mechanism, DeclaredCredential] = field(default_factory=dict)
    verify_login: bool = False
    prevent_destroy: bool = False
    adopt: bool = False
    absent: frozenset[Mechanism] = frozenset()
    is_requested: bool = False
    ignored: tuple[str, ...] = ()

    @property
    def ignored_mechanisms(self) -> frozenset[Mechanism]:
        """The mechanisms of the ignored credentials."""
        return frozenset(Mechanism(path.removeprefix(MECHANISM_FIELD_PREFIX)) for path in self.ignored)


def parse_scram_user(name: str, spec: ScramUserSpec) -> tuple[ScramUserBody, tuple[SpecProblem, ...]]:
    """Return the body of a spec, and problems with credentials that brokers would reject."""
    resource = f"ScramUser/{name}"
    declared = {Mechanism.SHA_256: spec.mechanisms.sha_256, Mechanism.SHA_512: spec.mechanisms.sha_512}
    credentials = {mechanism: item for mechanism, item in declared.items() if item is not None}
    problems = [
        problem
        for mechanism, item in credentials.items()
        for problem in _check_credential(resource, mechanism, item)
    ]
    known_paths = [MECHANISM_FIELD_PREFIX + mechanism.value for mechanism in Mechanism]
    ignored_problems = check_ignored_paths(resource, spec.lifecycle.ignoreChanges, known_paths)
    problems += ignored_problems
    if not credentials and not is_declared_absent(spec):
        problems.append(_report_no_mechanism(resource))
    body = ScramUserBody(
        {m: DeclaredCredential(item.password, item.iterations) for m, item in credentials.items()},
        spec.verify == "login",
        spec.lifecycle.preventDestroy,
        spec.lifecycle.adopt,
        ignored=() if ignored_problems else tuple(spec.lifecycle.ignoreChanges),
    )
    return body, tuple(problems)


def dump_scram_user(body: ScramUserBody) -> JsonObject:
    """Return the body as plain data. For a secret, the data contains only the reference and the hash."""
    document: JsonObject = {
        "mechanisms": {
            mechanism.value: {**item.password.stated, "iterations": item.iterations}
            for mechanism, item in body.mechanisms.items()
        },
        "verifyLogin": body.verify_login,
        "preventDestroy": body.prevent_destroy,
        "adopt": body.adopt,
    }
    return {**document, "ignoreChanges": list(body.ignored)} if body.ignored else document


def bind_scram_user(json: JsonObject) -> ScramUserBody:
    """Convert the result of `dump_scram_user` back to a body."""
    mechanisms: dict[Mechanism, DeclaredCredential] = {}
    for name, item in as_object(json["mechanisms"]).items():
        values = as_object(item)
        password = Secret("", as_text_or_none(values["reference"]), as_text(values["secret"]))
        mechanisms[Mechanism(name)] = DeclaredCredential(password, as_int_or_none(values["iterations"]))
    return ScramUserBody(
        mechanisms,
        as_bool(json["verifyLogin"]),
        as_bool(json["preventDestroy"]),
        as_bool(json["adopt"]),
        ignored=as_texts(json.get("ignoreChanges", ())),
    )


def _check_credential(resource: str, mechanism: Mechanism, item: CredentialSpec) -> Iterator[SpecProblem]:
    if not item.password.value:
        yield _build_problem(
            ("mechanisms", mechanism.value, "password"),
            resource,
            mechanism,
            "empty-password",
            "Password is empty",
            f"The password of {resource} for {mechanism} is empty. No client can log in with it.",
            f"Check the value that {item.password.reference} refers to."
            if item.password.reference
            else "Write a reference to the password, such as ${env.NAME} or ${file.PATH}.",
        )
    elif item.password.reference is None:
        yield _warn_literal_password(resource, mechanism)
    if item.iterations is not None and not MIN_ITERATIONS <= item.iterations <= MAX_ITERATIONS:
        yield _build_problem(
            ("mechanisms", mechanism.value, "iterations"),
            resource,
            mechanism,
            "bad-value",
            "Value not allowed",
            f"'iterations' is {item.iterations}, but brokers accept {MIN_ITERATIONS} to {MAX_ITERATIONS}.",
            "Remove 'iterations' to let kdeclare choose a number.",
        )


def _warn_literal_password(resource: str, mechanism: Mechanism) -> SpecProblem:
    return SpecProblem(
        ("mechanisms", mechanism.value, "password"),
        warning(
            LITERAL_SECRET,
            "Secret in a manifest",
            f"The manifest contains the password of {resource} for {mechanism} in plain text. Everyone who "
            "can read the manifest can read the password. Plans with the password cannot be saved.",
            hint="Write ${env.NAME} or ${file.PATH} instead.",
            resource=resource,
            subject=mechanism,
        ),
    )


def _report_no_mechanism(resource: str) -> SpecProblem:
    return _build_problem(
        ("mechanisms",),
        resource,
        None,
        "no-credentials",
        "No credentials declared",
        f"{resource} declares no mechanism, so the user could not log in.",
        "Declare SCRAM-SHA-512 or SCRAM-SHA-256. To delete the user, set lifecycle.state to absent.",
    )


def _build_problem(
    path: SpecPath,
    resource: str,
    mechanism: Mechanism | None,
    code: str,
    summary: str,
    detail: str,
    hint: str,
) -> SpecProblem:
    return SpecProblem(path, error(code, summary, detail, hint=hint, resource=resource, subject=mechanism))
