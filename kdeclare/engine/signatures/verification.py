"""Verify the signature of a plan file against trusted keys.

A broken signature is an error, like a plan whose content was changed (exit code 1). A plan that is intact,
but has no signature by a trusted key, is denied (exit code 3).
"""

from collections.abc import Sequence
from datetime import datetime

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.engine.signatures.signature import NAMESPACE, SignedContent, build_message
from kdeclare.engine.signatures.ssh_keygen import verify_with_ssh_keygen
from kdeclare.engine.signatures.sshsig import ED25519, parse_sshsig, verify_ed25519
from kdeclare.engine.signatures.trusted_keys import TrustedKey

_SIGN_HINT = "Make a new plan with 'kdeclare plan --out FILE --sign KEY'."


@dataclass(frozen=True, slots=True)
class Signer:
    """The signer of a plan, according to the trusted keys."""

    name: str
    key: str
    signed_at: str


def verify_signature(
    content: SignedContent, key_lists: Sequence[Sequence[TrustedKey]], name: str, now: datetime
) -> Signer:
    """Return the signer of a plan. Raises KdeclareError if no trusted key signed the plan.

    key_lists: lists of trusted keys. Each list must contain the key that signed the plan.
    name: the name of the file, for messages.
    """
    signature = content.signature
    if signature is None:
        raise build_denial(
            "signature-required", "Plan is not signed", f"'{name}' has no signature.", _SIGN_HINT
        )
    if not key_lists or not all(key_lists):
        raise build_denial(
            "no-trusted-keys",
            "No trusted keys",
            f"'{name}' is signed with key {signature.key}, but the project trusts no keys.",
            "Add the public key to 'signatures.keys' in the project file. In pull requests, the project "
            "file of the base branch must list the key, too.",
        )
    parsed = parse_sshsig(signature.value)
    trusted = [_find_usable_key(keys, parsed.public_key, signature.key, name, now) for keys in key_lists]
    require_intact_signature(content, name)
    return Signer(trusted[0].name, signature.key, signature.signed_at)


def require_intact_signature(content: SignedContent, name: str) -> None:
    """Raise KdeclareError if the key in the signature of a plan did not sign the plan.

    A plan without a signature is accepted. The caller checks whether to trust the key.
    """
    signature = content.signature
    if signature is None:
        return
    parsed = parse_sshsig(signature.value)
    message = build_message(content.plan_id, content.created_at, signature.signed_at)
    if parsed.namespace != NAMESPACE:
        is_intact = False
    elif parsed.key_type == ED25519:
        is_intact = verify_ed25519(parsed, message)
    else:
        is_intact = verify_with_ssh_keygen(signature.value, NAMESPACE, message)
    if not is_intact:
        raise KdeclareError(
            error(
                "signature-invalid",
                "Signature does not match the plan",
                f"The signature in '{name}' with key {signature.key} does not match this plan. Either it "
                "was made for another plan, or the signature, 'created_at' or 'signed_at' was changed in the "
                "file.",
                hint=_SIGN_HINT,
            )
        )


def _find_usable_key(
    keys: Sequence[TrustedKey], public_key: bytes, fingerprint: str, name: str, now: datetime
) -> TrustedKey:
    same_keys = [key for key in keys if key.public_key == public_key]
    refusals = [key.explain_refusal(NAMESPACE, now) for key in same_keys]
    usable_keys = [key for key, refusal in zip(same_keys, refusals, strict=True) if refusal is None]
    if usable_keys:
        return usable_keys[0]
    if same_keys:
        raise build_denial(
            "untrusted-signature",
            "Signing key is not valid",
            f"'{name}' is signed with the key of {same_keys[0].name} ({fingerprint}), which {refusals[0]}.",
            "Sign a new plan with a valid key.",
        )
    raise build_denial(
        "untrusted-signature",
        "Signing key is not trusted",
        f"'{name}' is signed with key {fingerprint}, which is not a trusted key of the project.",
        "Sign a new plan with a trusted key, or add the public key to 'signatures.keys' in the project file.",
    )


def build_denial(code: str, summary: str, detail: str, hint: str) -> KdeclareError:
    """Return the error for a plan that must not be applied because of its signature."""
    return KdeclareError(
        error(code, summary, f"{detail} Nothing was applied.", hint=hint), exit_code=ExitCode.DENIED
    )
