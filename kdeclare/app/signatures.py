"""Sign plans, and check the signatures of plan files with the keys that a project trusts."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.engine.planning.planfile import CheckSignature
from kdeclare.engine.signatures.signature import SignedContent, SignMessage
from kdeclare.manifests.project import PROJECT_FILE, Project, read_signature_rules
from kdeclare.report.plan.signature_text import SignatureView

_REFERENCE = re.compile(r"\$\{(env|file)\.([^}]+)\}")


def load_signer(key: str, environ: Mapping[str, str]) -> SignMessage:
    """Return a function that signs plans. Raises KdeclareError if the key cannot be used.

    key: the path of a key file, or a reference (``${env.NAME}`` or ``${file.PATH}``) whose value is the key.
    The limits on references in manifests do not apply, because this reference does not come from a manifest.
    """
    from kdeclare.engine.signatures.signing_key import load_signing_key  # slow to import, and rarely needed

    if "\n" in key or "PRIVATE KEY" in key:  # must not appear in a message
        raise KdeclareError(
            error(
                "no-signing-key",
                "Signing key on the command line",
                "The value of --sign is the text of a key. Other users can see the key in the process list.",
                hint="Create a new key, because this key is no longer secret. Pass the path of its file, or "
                "'${env.NAME}' to read the key from an environment variable.",
            )
        )
    reference = _REFERENCE.fullmatch(key)
    if reference is not None and reference[1] == "env":
        text = environ.get(reference[2])
        if not text:
            raise KdeclareError(
                error(
                    "no-signing-key",
                    "No signing key",
                    f"The environment variable {reference[2]} is not set.",
                    hint="Set the variable to the text of a private key, or pass the path of a key file.",
                )
            )
        return load_signing_key(text, None, environ)
    file = Path(key if reference is None else reference[2])
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "it is not text"
        raise KdeclareError(
            error(
                "no-signing-key",
                "No signing key",
                f"The key file cannot be read: {file}: {reason}.",
                hint="Pass the path of a private key with --sign.",
            )
        ) from None
    return load_signing_key(text, file, environ)


def build_signature_check(project: Project, *, is_demanded: bool) -> CheckSignature | None:
    """Return a function that refuses plans without a valid signature, or None if signatures are not required.

    is_demanded: whether the user requires a signature, even if the project does not.
    """
    if not is_demanded and not project.signatures.is_required:
        return None

    def check_signature(content: SignedContent, name: str) -> None:
        from kdeclare.engine.signatures.verification import verify_signature

        verify_signature(content, project.signatures.load_keys(), name, datetime.now(UTC))

    return check_signature


def reject_unsigned_apply(project: Project) -> None:
    """Refuse to apply manifests without a plan file if the project requires signatures.

    Raises KdeclareError.
    """
    if project.signatures.is_required:
        from kdeclare.engine.signatures.verification import build_denial

        raise build_denial(
            "signature-required",
            "Only signed plans can be applied",
            f"The project requires signed plans in the environment '{project.environment.name}'. Manifests "
            "cannot be signed, so they cannot be applied without a plan file.",
            "Run 'kdeclare plan --out FILE --sign KEY', and then 'kdeclare apply FILE'.",
        )


def describe_signature(
    content: SignedContent, project_file: Path | None, env: str, environ: Mapping[str, str]
) -> SignatureView | None:
    """Return what is known about the signature of a plan, or None if it is not signed. Raises KdeclareError.

    project_file: the project file given by the user; None means the one in the working directory, if it
    exists. env: the environment of the plan.
    """
    from kdeclare.engine.signatures.verification import require_intact_signature, verify_signature

    signature = content.signature
    if signature is None:
        return None
    try:
        require_intact_signature(content, "the plan")
    except KdeclareError as problem:
        is_broken = problem.diagnostics[0].code == "signature-invalid"
        return SignatureView(
            signature.key, signature.signed_at, None, problem.diagnostics[0].detail, is_broken=is_broken
        )
    file = project_file or Path(PROJECT_FILE)
    if project_file is None and not file.exists():
        return SignatureView(signature.key, signature.signed_at, None, "There is no project file.")
    try:
        rules = read_signature_rules(file, env, environ)
        signer = verify_signature(content, rules.load_keys(), "the plan", datetime.now(UTC))
    except KdeclareError as problem:
        detail = problem.diagnostics[0].detail.removesuffix(" Nothing was applied.")
        return SignatureView(signature.key, signature.signed_at, None, detail)
    return SignatureView(signature.key, signature.signed_at, signer.name)
