"""Resolving artifacts with the Ivy jar that PySpark carries. Ivy checks the repository's checksums."""

import html
import importlib.util
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen import dataclass

MIRROR_VARIABLE = "KDECLARE_MAVEN_MIRROR"
SETTINGS_VARIABLE = "KDECLARE_IVY_SETTINGS"

_TIMEOUT_SECONDS = 900

# How Ivy words what goes wrong, the telling ones first.
_REASONS = tuple(
    (re.compile(pattern, re.MULTILINE), wording)
    for pattern, wording in (
        (r"Host (\S+) not found", "unknown host {0}"),
        (r"Server access error at url (\S+) \((?:[\w.]+: )?(.*)\)$", "{1}: {0}"),
        (r"^\s*:: (\S+#\S+;\S+: .*?)\s*$", "{0}"),
        (r"^(?:Error|Exception in thread \S+|Caused by:)\s*(.*)$", "{0}"),
    )
)


@dataclass(frozen=True, slots=True)
class Dependency:
    """One artifact to resolve; ``transitive``: with all that it needs to run."""

    organisation: str
    name: str
    revision: str
    transitive: bool = True


class ResolveFailed(Exception):
    """Ivy could not resolve everything. The message is the first reason that it gave, if any."""


def find_ivy() -> Path:
    """The Ivy jar inside PySpark. Raise KdeclareError ``ivy-missing``.

    PySpark is found but not imported, which would take a second.
    """
    found = importlib.util.find_spec("pyspark")
    for place in (found.submodule_search_locations or ()) if found else ():
        jars = sorted(Path(place, "jars").glob("ivy-*.jar"))
        if jars:
            return jars[-1]
    raise KdeclareError(
        error(
            "ivy-missing",
            "PySpark's Ivy jar was not found",
            "Kafka's jars are resolved with the Ivy jar that PySpark carries, and PySpark is not installed.",
            hint="Install kdeclare with its dependencies, or set KAFKA_HOME to an installed Kafka.",
        )
    )


def ivy_file(dependencies: Sequence[Dependency]) -> str:
    """The text of an ``ivy.xml`` that asks for these."""
    lines = "".join(_element(d) for d in dependencies)
    return (
        '<ivy-module version="2.0">\n  <info organisation="kdeclare" module="sandbox"/>\n'
        '  <configurations><conf name="default"/></configurations>\n'
        f"  <dependencies>\n{lines}  </dependencies>\n</ivy-module>\n"
    )


def _element(wanted: Dependency) -> str:
    names = f"org={_quoted(wanted.organisation)} name={_quoted(wanted.name)}"
    conf = "default->default" if wanted.transitive else "default->master"
    return f'    <dependency {names} rev={_quoted(wanted.revision)} conf="{conf}"/>\n'


def _quoted(value: str) -> str:
    return f'"{html.escape(value)}"'


def mirror_settings(address: str) -> str:
    """The text of an ``ivysettings.xml`` whose only repository is a Maven one at this address."""
    return (
        '<ivysettings>\n  <settings defaultResolver="mirror"/>\n  <resolvers>\n'
        f'    <ibiblio name="mirror" m2compatible="true" root={_quoted(address)}/>\n'
        "  </resolvers>\n</ivysettings>\n"
    )


def resolve(
    java: str,
    dependencies: Sequence[Dependency],
    folder: Path,
    environment: Mapping[str, str] | None = None,
) -> tuple[Path, ...]:
    """Download the dependencies into ``folder`` unless they are there, and return all jars.

    Ivy's own default repository is used unless the environment names a settings file or a mirror.
    What Ivy said goes to ``ivy.log`` in that folder. Raise ResolveFailed, or KdeclareError
    ``ivy-missing`` or ``ivy-settings``.
    """
    environment = os.environ if environment is None else environment
    ivy = find_ivy()
    folder.mkdir(parents=True, exist_ok=True)
    wanted, class_path = folder / "ivy.xml", folder / "classpath.txt"
    wanted.write_text(ivy_file(dependencies), "utf-8")
    class_path.unlink(missing_ok=True)
    command = [java, f"-Divy.default.ivy.user.dir={folder}", "-jar", str(ivy)]
    command += _settings_arguments(folder, environment)
    command += ["-cache", str(folder / "cache"), "-ivy", str(wanted), "-confs", "default"]
    # "bundle": an OSGi jar, of which Kafka needs six.
    command += ["-types", "jar", "bundle", "-cachepath", str(class_path)]
    log = folder / "ivy.log"
    with log.open("wb") as sink:
        try:
            code = subprocess.run(
                command, stdout=sink, stderr=subprocess.STDOUT, timeout=_TIMEOUT_SECONDS, check=False
            ).returncode
        except subprocess.TimeoutExpired as problem:
            raise ResolveFailed(f"it took longer than {_TIMEOUT_SECONDS // 60} minutes") from problem
    if code != 0 or not class_path.exists():
        raise ResolveFailed(reason(log.read_text("utf-8", "replace")))
    return tuple(Path(p) for p in class_path.read_text("utf-8").strip().split(os.pathsep) if p)


def reason(log: str) -> str:
    """The first reason for a failure in what Ivy printed, or an empty string."""
    for pattern, wording in _REASONS:
        found = pattern.search(log)
        if found:
            return wording.format(*found.groups())
    return ""


def _settings_arguments(folder: Path, environment: Mapping[str, str]) -> list[str]:
    own = environment.get(SETTINGS_VARIABLE)
    if own:
        if not Path(own).is_file():
            raise KdeclareError(
                error(
                    "ivy-settings",
                    "The Ivy settings file was not found",
                    f"{SETTINGS_VARIABLE} names {own}, and there is no such file.",
                    hint=f"Correct {SETTINGS_VARIABLE}, or unset it to use Ivy's default repository.",
                )
            )
        return ["-settings", own]
    mirror = environment.get(MIRROR_VARIABLE)
    if mirror:
        settings = folder / "ivysettings.xml"
        settings.write_text(mirror_settings(mirror), "utf-8")
        return ["-settings", str(settings)]
    return []
