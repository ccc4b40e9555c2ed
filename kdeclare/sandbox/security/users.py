"""Making a secure sandbox's certificates, and letting its users in."""

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.sandbox import config, launch
from kdeclare.sandbox.certificates import issue, make_authority
from kdeclare.sandbox.claiming import Progress
from kdeclare.sandbox.layout import SecurityFiles, write_whole
from kdeclare.sandbox.security.access import ADMIN, BROKER, READER, client_properties
from kdeclare.sandbox.settings import SandboxSettings


def certify(java: str, files: SecurityFiles, progress: Progress) -> None:
    """Make the authority and the brokers' keystore, as far as they are not there.

    Raise KdeclareError ``sandbox-certificates``.
    """
    if not files.keystore.exists():
        progress("making certificates")
        make_authority(java, files)
        issue(java, files, files.keystore, BROKER)


def admit(files: SecurityFiles, settings: SandboxSettings, progress: Progress) -> None:
    """Give the reader his rights, once, and write both users' client properties.

    They are written anew at each start, for where the folder is now; the reader's says that he has his
    rights. Raise KdeclareError ``sandbox-access``.
    """
    _write(files, settings, ADMIN)
    if not files.client(READER).exists():
        progress(f"letting the user '{READER}' look at all topics")
        _grant(files, settings)
    _write(files, settings, READER)


def _write(files: SecurityFiles, settings: SandboxSettings, user: str) -> None:
    write_whole(files.client(user), config.render(client_properties(files, settings, user)))


def _grant(files: SecurityFiles, settings: SandboxSettings) -> None:
    """What a plan has to read: topics and the cluster with their configs. Nothing that changes anything."""
    done = launch.run_kafka_tool(
        "org.apache.kafka.tools.AclCommand",
        *("--bootstrap-server", settings.bootstrap, "--command-config", str(files.client(ADMIN))),
        *("--add", "--force", "--allow-principal", f"User:{READER}"),
        *("--operation", "Describe", "--operation", "DescribeConfigs", "--topic", "*", "--cluster"),
    )
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()
        raise KdeclareError(
            error(
                "sandbox-access",
                "The rights of the sandbox's users could not be granted",
                f"Kafka's tool for ACLs ended with {done.returncode}:\n{said}",
                hint="Look at the brokers' logs: kdeclare sandbox status names them.",
            )
        )
