"""Render the signature of a saved plan as text and as Markdown."""

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.report.elements.markdown_escape import escape_code, escape_prose


@dataclass(frozen=True, slots=True)
class SignatureView:
    """The signature of a saved plan, and the result of verifying it.

    key: the fingerprint of the key.
    signed_at: the time of the signature, according to the signer.
    signer: the owner of the key; None if the signature is not accepted.
    problem: why the signature is not accepted; None if it is accepted.
    is_broken: whether the signature does not match the plan.
    """

    key: str
    signed_at: str
    signer: str | None = None
    problem: str | None = None
    is_broken: bool = False


def render_signature_text(view: SignatureView) -> str:
    """Return the line about the signature that follows the text of a plan."""
    if view.signer is not None:
        return f"Signed by {view.signer} at {view.signed_at} with key {view.key} (verified).\n"
    return f"{_describe_unaccepted(view)} with key {view.key}: {view.problem}\n"


def render_signature_markdown(view: SignatureView) -> str:
    """Return the paragraph about the signature that follows the Markdown of a plan."""
    key = escape_code(view.key)
    if view.signer is not None:
        return f"\nSigned by {escape_prose(view.signer)} at {view.signed_at} with key {key} (verified).\n"
    return f"\n**{_describe_unaccepted(view)}** with key {key}: {escape_prose(view.problem or '')}\n"


def _describe_unaccepted(view: SignatureView) -> str:
    if view.is_broken:
        return "INVALID SIGNATURE"
    return f"Signed at {view.signed_at} (not verified)"
