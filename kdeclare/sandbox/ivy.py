"""Download Maven artifacts with the Ivy jar in PySpark.

Ivy verifies the artifacts with the checksums in the repository.
"""

import html
import importlib.util
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass

SETTINGS_VARIABLE = "KDECLARE_IVY_SETTINGS"

_TIMEOUT_SECONDS = 900

# Patterns of Ivy's error messages, the most specific first.
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
    """A Maven artifact to download.

    transitive: whether to also download its runtime dependencies. classifier: the suffix that distinguishes
    an additional file of the artifact, such as ``all``; empty for the main file. extension: the file name
    extension.
    """

    organisation: str
    name: str
    revision: str
    transitive: bool = True
    classifier: str = ""
    extension: str = "jar"


class ResolutionError(Exception):
    """Raised if Ivy cannot download all artifacts. The message is the first reason in Ivy's output.

    The message is empty if the output contains no reason.
    """


def get_ivy_jar() -> Path:
    """Return the path of the Ivy jar in PySpark. Raises KdeclareError ``ivy-missing``.

    PySpark is not imported to find the jar, because the import would take a second.
    """
    module_spec = importlib.util.find_spec("pyspark")
    for package_dir in (module_spec.submodule_search_locations or ()) if module_spec else ():
        jars = sorted(Path(package_dir, "jars").glob("ivy-*.jar"))
        if jars:
            return jars[-1]
    raise KdeclareError(
        error(
            "ivy-missing",
            "PySpark's Ivy jar was not found",
            f"If {SETTINGS_VARIABLE} is set, Kafka's jars are downloaded with the Ivy jar in PySpark, but "
            "PySpark is not installed.",
            hint=f"Unset {SETTINGS_VARIABLE}, or set KDECLARE_MAVEN_MIRROR to the URL of a Maven repository, "
            "or install PySpark with `pip install 'kdeclare[fleet]'`.",
        )
    )


def render_ivy_file(dependencies: Sequence[Dependency]) -> str:
    """Render an ``ivy.xml`` with these dependencies."""
    lines = "".join(_render_dependency(d) for d in dependencies)
    return (
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">\n'
        '  <info organisation="kdeclare" module="sandbox"/>\n'
        '  <configurations><conf name="default"/></configurations>\n'
        f"  <dependencies>\n{lines}  </dependencies>\n</ivy-module>\n"
    )


def _render_dependency(dependency: Dependency) -> str:
    names = f"org={_quote(dependency.organisation)} name={_quote(dependency.name)}"
    attributes = f"{names} rev={_quote(dependency.revision)}"
    if not dependency.classifier:
        conf = "default->default" if dependency.transitive else "default->master"
        return f'    <dependency {attributes} conf="{conf}"/>\n'
    attributes += f' conf="default->default" transitive="{str(dependency.transitive).lower()}"'
    extension = _quote(dependency.extension)
    artifact = f"name={_quote(dependency.name)} type={extension} ext={extension}"
    artifact += f" m:classifier={_quote(dependency.classifier)}"
    return f"    <dependency {attributes}>\n      <artifact {artifact}/>\n    </dependency>\n"


def _quote(value: str) -> str:
    return f'"{html.escape(value)}"'


def render_settings_without_poms() -> str:
    """Render an ``ivysettings.xml`` with which Ivy uses its default repository and does not read POMs."""
    return (
        '<ivysettings>\n  <settings defaultResolver="repository"/>\n  <resolvers>\n'
        '    <ibiblio name="repository" m2compatible="true" usepoms="false"/>\n'
        "  </resolvers>\n</ivysettings>\n"
    )


def resolve(
    java: str,
    dependencies: Sequence[Dependency],
    folder: Path,
    environment: Mapping[str, str] | None = None,
) -> tuple[Path, ...]:
    """Download the dependencies into ``folder``, unless the folder already contains them. Return all jars.

    Uses Ivy's default repository, unless ``environment`` sets a settings file. Ivy's output is written to
    ``ivy.log`` in the folder. Raises `ResolutionError`, or KdeclareError ``ivy-missing`` or
    ``ivy-settings``.
    """
    environment = os.environ if environment is None else environment
    ivy_jar = get_ivy_jar()
    folder.mkdir(parents=True, exist_ok=True)
    ivy_path, class_path_file = folder / "ivy.xml", folder / "classpath.txt"
    ivy_path.write_text(render_ivy_file(dependencies), "utf-8")
    class_path_file.unlink(missing_ok=True)
    command = [java, f"-Divy.default.ivy.user.dir={folder}", "-jar", str(ivy_jar)]
    # Without transitive dependencies, POMs are not needed, and some of them refer to POMs that do not exist.
    reads_poms = any(d.transitive for d in dependencies)
    command += _build_settings_arguments(folder, environment, reads_poms=reads_poms)
    command += ["-cache", str(folder / "cache"), "-ivy", str(ivy_path), "-confs", "default"]
    # A "bundle" is an OSGi jar. Kafka needs six OSGi jars.
    extensions = sorted({d.extension for d in dependencies} - {"jar"})
    command += ["-types", "jar", "bundle", *extensions, "-cachepath", str(class_path_file)]
    log_path = folder / "ivy.log"
    with log_path.open("wb") as log_file:
        try:
            exit_code = subprocess.run(
                command, stdout=log_file, stderr=subprocess.STDOUT, timeout=_TIMEOUT_SECONDS, check=False
            ).returncode
        except subprocess.TimeoutExpired as problem:
            raise ResolutionError(f"it took longer than {_TIMEOUT_SECONDS // 60} minutes") from problem
    if exit_code != 0 or not class_path_file.exists():
        raise ResolutionError(find_failure_reason(log_path.read_text("utf-8", "replace")))
    return tuple(Path(p) for p in class_path_file.read_text("utf-8").strip().split(os.pathsep) if p)


def find_failure_reason(log: str) -> str:
    """Return the first reason for the failure in Ivy's output; empty if there is none."""
    for pattern, wording in _REASONS:
        match = pattern.search(log)
        if match:
            return wording.format(*match.groups())
    return ""


def _build_settings_arguments(folder: Path, environment: Mapping[str, str], *, reads_poms: bool) -> list[str]:
    settings_file = environment.get(SETTINGS_VARIABLE)
    if settings_file:
        if not Path(settings_file).is_file():
            raise KdeclareError(
                error(
                    "ivy-settings",
                    "The Ivy settings file was not found",
                    f"{SETTINGS_VARIABLE} is set to {settings_file}, which does not exist.",
                    hint=f"Correct {SETTINGS_VARIABLE}, or unset it to use Ivy's default repository.",
                )
            )
        return ["-settings", settings_file]
    if not reads_poms:
        settings = folder / "ivysettings.xml"
        settings.write_text(render_settings_without_poms(), "utf-8")
        return ["-settings", str(settings)]
    return []
