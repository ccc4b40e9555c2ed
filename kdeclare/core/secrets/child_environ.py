"""The environment of programs that kdeclare starts, without the secrets that only kdeclare needs."""

from collections.abc import Mapping

OWN_SECRETS = frozenset(
    {
        "KDECLARE_AZURE_TOKEN",
        "KDECLARE_BASE_TOKEN",
        "KDECLARE_GITLAB_TOKEN",
        "KDECLARE_OLD_SECRET_KEY",
        "KDECLARE_PLANS_TOKEN",
        "KDECLARE_SECRET_KEY",
        "KDECLARE_SIGNING_KEY",
        "KDECLARE_SIGNING_PASSPHRASE",
        "KDECLARE_STATE_TOKEN",
    }
)
"""The environment variables with secrets of kdeclare itself and of its CI scripts."""


def build_child_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for another program, without the secrets of kdeclare.

    The program can outlive kdeclare, start other programs, or log its environment.
    """
    return {name: value for name, value in environ.items() if name not in OWN_SECRETS}
