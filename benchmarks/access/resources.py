"""The resources that the benchmark creates, as manifests and as items of bare requests."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

PER_MANIFEST = 100
"""The number of bindings in each ``Acl`` manifest. Each manifest is for one principal."""
ACL, SCRAM, QUOTA = "Acl", "ScramUser", "ClientQuota"
PASSWORD_VARIABLE = "BENCHMARK_PASSWORD"
LIMITS = {"producer_byte_rate": 1_000_000, "consumer_byte_rate": 2_000_000}


def name_of(number: int) -> str:
    """Return the name of one user or principal."""
    return f"app-{number:04}"


def list_bindings(count: int) -> Iterator[tuple[str, str, str, str]]:
    """Yield the principal, type of resource, name and operation of each binding."""
    for number in range(count // PER_MANIFEST):
        principal = f"User:{name_of(number)}"
        for topic in range(PER_MANIFEST // 2):
            yield principal, "topic", f"{name_of(number)}-{topic:02}", "WRITE"
        for topic in range(PER_MANIFEST // 2 - 1):
            yield principal, "topic", f"{name_of(number)}-{topic:02}", "READ"
        yield principal, "group", name_of(number), "READ"


def write_project(folder: Path, kind: str, count: int, client: Path, bootstrap: str) -> None:
    """Write a project file, and one manifest per principal or user."""
    manifests = folder / "manifests"
    manifests.mkdir(parents=True)
    (folder / "kdeclare.yaml").write_text(f"""\
apiVersion: kdeclare/v1
kind: Project
metadata: {{name: benchmark}}
spec:
  environments:
    default: {{bootstrapServers: '{bootstrap}', clientConfigFile: '{client}'}}
""")
    numbers = range(count // PER_MANIFEST if kind == ACL else count)
    for number in numbers:
        header = f"apiVersion: kdeclare/v1\nkind: {kind}\nmetadata: {{name: {name_of(number)}}}\nspec:\n"
        (manifests / f"{name_of(number)}.yaml").write_text(header + _SPECS[kind](number))


def list_environment(count: int) -> Mapping[str, str]:
    """Return environment variables with a different password for each user."""
    return {f"{PASSWORD_VARIABLE}_{number}": f"password-{number}" for number in range(count)}


def _write_acl(number: int) -> str:
    topics = [f"{name_of(number)}-{topic:02}" for topic in range(PER_MANIFEST // 2)]
    return (
        f"  principal: User:{name_of(number)}\n  produce: [{', '.join(topics)}]\n"
        f"  consume: {{topics: [{', '.join(topics[:-1])}], groups: [{name_of(number)}]}}\n"
    )


def _write_scram_user(number: int) -> str:
    return f"  mechanisms:\n    SCRAM-SHA-512: {{password: '${{env.{PASSWORD_VARIABLE}_{number}}}'}}\n"


def _write_quota(number: int) -> str:
    limits = ", ".join(f"{key}: {value}" for key, value in LIMITS.items())
    return f"  entity: {{user: {name_of(number)}}}\n  limits: {{{limits}}}\n"


_SPECS: Mapping[str, Callable[[int], str]] = {
    ACL: _write_acl,
    SCRAM: _write_scram_user,
    QUOTA: _write_quota,
}
