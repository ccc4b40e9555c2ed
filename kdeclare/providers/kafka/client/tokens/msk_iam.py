"""Tokens for Amazon MSK with IAM, signed by the package aws-msk-iam-sasl-signer-python.

The signer finds AWS credentials as all AWS tools do: in environment variables, in profiles, and in the
metadata of instances and containers.
"""

import os
import re
import time
from collections.abc import Iterable, Mapping

from kdeclare.core.units import format_names
from kdeclare.providers.kafka.client.connection_problems import build_property_error
from kdeclare.providers.kafka.client.tokens.token import Token, TokenRequest
from kdeclare.providers.kafka.property_names import TOKEN_PROVIDER_KEY

_OPTIONS = ("profile", "region", "role", "session")
_REGION = re.compile(r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?:\d+$")
"""Matches the address of an MSK broker, and captures the AWS region in the address."""


def fetch_token(request: TokenRequest) -> Token:
    """Return a token that is signed with AWS credentials. Nothing is sent to MSK.

    Options: ``region``; ``profile``, an AWS profile; ``role``, the ARN of a role to assume; ``session``, the
    name of the session in which the role is assumed.

    Raises KdeclareError, ModuleNotFoundError if the extra ``msk-iam`` is not installed, and the exceptions of
    the signer.
    """
    unknown = sorted(set(request.options) - set(_OPTIONS))
    if unknown:
        raise build_property_error(
            f"{TOKEN_PROVIDER_KEY}.{unknown[0]}",
            "the token provider 'msk-iam' does not have this option",
            hint=f"Use {format_names([f'{TOKEN_PROVIDER_KEY}.{name}' for name in _OPTIONS])}.",
        )
    from aws_msk_iam_sasl_signer import MSKAuthTokenProvider  # from the extra msk-iam

    region = find_region(request.options, request.servers, os.environ)
    profile, role = request.options.get("profile"), request.options.get("role")
    if role:
        names = [name for name in (request.options.get("session"),) if name]
        text, expires_at_ms = MSKAuthTokenProvider.generate_auth_token_from_role_arn(region, role, *names)
    elif profile:
        text, expires_at_ms = MSKAuthTokenProvider.generate_auth_token_from_profile(region, profile)
    else:
        text, expires_at_ms = MSKAuthTokenProvider.generate_auth_token(region)
    return Token(text, max(0.0, expires_at_ms / 1000 - time.time()))


def find_region(options: Mapping[str, str], servers: Iterable[str], environ: Mapping[str, str]) -> str:
    """Return the AWS region of the cluster from an option, a broker address, or an environment variable.

    Raises KdeclareError if none of them contains the region.
    """
    matches = (_REGION.search(server.strip()) for server in servers)
    regions = (
        options.get("region"),
        *(match[1] for match in matches if match),
        environ.get("AWS_REGION"),
        environ.get("AWS_DEFAULT_REGION"),
    )
    region = next((name for name in regions if name), None)
    if region is None:
        raise build_property_error(
            f"{TOKEN_PROVIDER_KEY}.region",
            "the property is missing, and the addresses of the cluster do not contain the AWS region",
            hint=f"Set {TOKEN_PROVIDER_KEY}.region, or the environment variable AWS_REGION.",
        )
    return region
