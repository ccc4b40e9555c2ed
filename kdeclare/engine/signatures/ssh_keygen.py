"""Sign and verify with ``ssh-keygen``, for keys that only OpenSSH can use, such as keys in an agent."""

import base64
import binascii
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.secrets.child_environ import build_child_environ
from kdeclare.engine.signatures.signature import PASSPHRASE_VARIABLE

_TIMEOUT_S = 120
_BEGIN, _END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"
_ASKPASS = f'#!/bin/sh\nprintf "%s\\n" "${PASSPHRASE_VARIABLE}"\n'
"""The program that ssh-keygen runs to get the passphrase."""


def sign_with_ssh_keygen(key_file: Path, namespace: str, message: bytes, environ: Mapping[str, str]) -> bytes:
    """Sign a message. Return the signature with its public key in OpenSSH format.

    key_file: a private key, or a public key whose private key is in the agent. Raises KdeclareError.
    """
    arguments = ("-Y", "sign", "-n", namespace, "-f", str(key_file.absolute()))
    with tempfile.TemporaryDirectory(prefix="kdeclare-sign-") as folder:
        variables = build_child_environ(environ)
        if PASSPHRASE_VARIABLE in environ:
            askpass = Path(folder, "askpass")
            askpass.write_text(_ASKPASS)
            askpass.chmod(0o700)
            variables |= {
                PASSPHRASE_VARIABLE: environ[PASSPHRASE_VARIABLE],
                "SSH_ASKPASS": str(askpass),
                "SSH_ASKPASS_REQUIRE": "force",
            }
        result = _run(arguments, message, variables, shows_prompts=sys.stderr.isatty())
    output = "".join(result.stdout.decode("ascii", "replace").splitlines())
    body = output.partition(_BEGIN)[2].partition(_END)[0]
    try:
        if result.returncode == 0 and body:
            return base64.b64decode(body, validate=True)
    except binascii.Error:
        pass
    raise KdeclareError(
        error(
            "signing-failed",
            "The plan cannot be signed",
            f"ssh-keygen did not sign with the key {key_file}: {_find_reason(result)}.",
            hint="Check that the key file exists. If the SSH agent or a security key holds the private key, "
            "check that it is available. If the key has a passphrase, put the passphrase into "
            f"{PASSPHRASE_VARIABLE}.",
        )
    )


def verify_with_ssh_keygen(
    signature: bytes, namespace: str, message: bytes, environ: Mapping[str, str] = os.environ
) -> bool:
    """Return whether the key in a signature signed this message.

    The caller checks whether to trust the key. Raises KdeclareError if ssh-keygen cannot be run.
    """
    body = base64.b64encode(signature).decode()
    lines = [body[start : start + 70] for start in range(0, len(body), 70)]
    with tempfile.TemporaryDirectory(prefix="kdeclare-verify-") as folder:
        file = Path(folder, "plan.sig")
        file.write_text("\n".join((_BEGIN, *lines, _END, "")))
        arguments = ("-Y", "check-novalidate", "-n", namespace, "-s", str(file))
        return _run(arguments, message, build_child_environ(environ)).returncode == 0


def _run(
    arguments: Sequence[str], message: bytes, environ: Mapping[str, str], *, shows_prompts: bool = False
) -> "subprocess.CompletedProcess[bytes]":
    """Run ssh-keygen with the message as its input.

    shows_prompts: whether messages of ssh-keygen, such as a request to touch a token, appear on stderr. If
        not, they are in the result.
    """
    try:
        return subprocess.run(
            ["ssh-keygen", *arguments],
            input=message,
            stdout=subprocess.PIPE,
            stderr=None if shows_prompts else subprocess.PIPE,
            env=dict(environ),
            timeout=_TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError:
        reason, hint = "ssh-keygen is not installed", "Install OpenSSH 8.2 or later, or use an Ed25519 key."
    except subprocess.TimeoutExpired:
        reason, hint = f"ssh-keygen did not finish within {_TIMEOUT_S} s", "Run the command again."
    except OSError as problem:
        reason, hint = f"ssh-keygen cannot be run: {problem.strerror or problem}", "Check the installation."
    raise KdeclareError(error("no-ssh-keygen", "This key needs ssh-keygen", f"{reason}.", hint=hint))


def _find_reason(result: "subprocess.CompletedProcess[bytes]") -> str:
    lines = (result.stderr or b"").decode("utf-8", "replace").strip().splitlines()
    return lines[-1].rstrip(".") if lines else f"exit code {result.returncode}"
