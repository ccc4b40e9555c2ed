"""The rules of an environment for signatures: whether plans must be signed, and the keys that may sign.

In pull requests, the rules in the project file of the base branch apply as well (`build_project_limits` does
the same for references). A pull request can therefore neither add a trusted key nor remove the requirement
before the pull request is merged.
"""

from pathlib import Path

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.engine.signatures.trusted_keys import TrustedKey, parse_trusted_keys
from kdeclare.manifests.project_schema import ProjectSpec, SignaturesSpec


@dataclass(frozen=True, slots=True)
class SignatureRules:
    """The trusted keys of one project file for one environment.

    required: whether apply accepts only signed plans. keys: public keys, or lines of an ``allowed_signers``
    file. files: files with such keys or lines. base: the rules of the trusted project file, or None if there
    is no such file.
    """

    required: bool = False
    keys: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()
    base: "SignatureRules | None" = None

    @property
    def is_required(self) -> bool:
        """Whether apply accepts only signed plans."""
        return self.required or (self.base is not None and self.base.is_required)

    def load_keys(self) -> tuple[tuple[TrustedKey, ...], ...]:
        """Return the lists of trusted keys. A signature is valid only if every list contains its key.

        Raises KdeclareError if a file cannot be read or is malformed.
        """
        own_keys = (*(key for text in self.keys for key in _parse_keys(text, "the project file")),)
        file_keys = tuple(key for file in self.files for key in _read_keys(file))
        base_lists = self.base.load_keys() if self.base is not None else ()
        return ((*own_keys, *file_keys), *base_lists)


def build_signature_rules(spec: ProjectSpec, env: str, folder: Path | None) -> SignatureRules:
    """Return the signature rules in a project file.

    Fields that the environment sets replace the fields of the project.
    folder: the folder of the project file; None if the other files in this folder are not trusted. The files
        in ``signatures.files`` are then ignored.
    """
    environment_spec = spec.environments.get(env)
    own = environment_spec.signatures if environment_spec is not None else SignaturesSpec()
    required = spec.signatures.required if own.required is None else own.required
    keys = spec.signatures.keys if own.keys is None else own.keys
    files = spec.signatures.files if own.files is None else own.files
    paths = () if folder is None else tuple(folder / file for file in files or ())
    return SignatureRules(bool(required), tuple(keys or ()), paths)


def _read_keys(file: Path) -> tuple[TrustedKey, ...]:
    try:
        return _parse_keys(file.read_text("utf-8"), f"'{file}'")
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "it is not UTF-8 text"
        raise KdeclareError(
            error(
                "unreadable-file",
                "File with trusted keys cannot be read",
                f"'{file}': {reason}.",
                hint="Correct the path in 'signatures.files' of the project file.",
            )
        ) from None


def _parse_keys(text: str, name: str) -> tuple[TrustedKey, ...]:
    try:
        return parse_trusted_keys(text)
    except ValueError as problem:
        raise KdeclareError(
            error(
                "bad-trusted-key",
                "Trusted key is malformed",
                f"In {name}, {problem}.",
                hint="Use a public key such as 'ssh-ed25519 AAAA… name', or a line of an OpenSSH allowed "
                "signers file.",
            )
        ) from None
