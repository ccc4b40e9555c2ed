"""Find Kafka's jars. The jars are pinned by their hashes, cached per user, and verified on every use."""

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path, PurePosixPath

import platformdirs

from kdeclare import java
from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.http.download import AlteredFilesError, DownloadError, download_files, hash_file
from kdeclare.sandbox import ivy
from kdeclare.sandbox.folder_lock import hold_lock
from kdeclare.sandbox.layout import write_atomically

CACHE_VARIABLE = "KDECLARE_CACHE_DIR"
HOME_VARIABLE = "KAFKA_HOME"
MIRROR_VARIABLE = "KDECLARE_MAVEN_MIRROR"

KAFKA_VERSION = "4.3.1"

DEPENDENCIES = (
    ivy.Dependency("org.apache.kafka", "kafka_2.13", KAFKA_VERSION),
    # The slf4j provider that Apache Kafka ships, in the version of log4j that the broker needs.
    ivy.Dependency("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4"),
    # Only the jar of the command-line tools. Its dependencies are 45 more jars, which Connect needs, too.
    ivy.Dependency("org.apache.kafka", "kafka-tools", KAFKA_VERSION, transitive=False),
)

# The file with the SHA-256 of each jar by its path in a Maven repository; written by pin.py.
PINS = Path(__file__).with_name("jars.json")

Progress = Callable[[str], None]


def ignore_progress(_: str) -> None:
    """Ignore a progress message."""


@dataclass(frozen=True, slots=True)
class PinnedJars:
    """A set of jars with known hashes.

    name: the name of the file in the cache that lists the jars. what: the name of the jars in messages. size:
        the download size for messages, such as "46 MB". dependencies: the artifacts from which Ivy finds all
        jars. pins: the SHA-256 of each jar in hexadecimal, by its path in a Maven repository.
        is_part_of_kafka: whether KAFKA_HOME can replace the download.
    """

    name: str
    what: str
    size: str
    dependencies: tuple[ivy.Dependency, ...]
    pins: Mapping[str, str]
    is_part_of_kafka: bool = True


@dataclass(frozen=True, slots=True)
class KafkaJars:
    """A version of Kafka and its jars."""

    version: str
    paths: tuple[Path, ...]

    @property
    def classpath(self) -> str:
        """The jars as a value for Java's CLASSPATH variable."""
        return os.pathsep.join(str(p) for p in self.paths)


def kafka_jars(
    progress: Progress = ignore_progress, environment: Mapping[str, str] | None = None
) -> KafkaJars:
    """Return the jars of Kafka.

    These are the jars in KAFKA_HOME. If KAFKA_HOME is not set, they are the pinned jars, which are downloaded
    if the cache does not contain them.

    Raises KdeclareError ``kafka-home``, ``jars-unavailable``, ``jars-altered``, ``cache-folder``, or an error
    of Java or Ivy.
    """
    environment = os.environ if environment is None else environment
    home = environment.get(HOME_VARIABLE)
    if home:
        return get_installed_kafka(Path(home).absolute())
    pinned_jars = PinnedJars(
        f"kafka-{KAFKA_VERSION}", f"Kafka {KAFKA_VERSION}", "46 MB", DEPENDENCIES, read_pins()
    )
    return KafkaJars(KAFKA_VERSION, resolve_pinned_jars(pinned_jars, progress, environment))


def resolve_pinned_jars(
    pinned_jars: PinnedJars, progress: Progress, environment: Mapping[str, str]
) -> tuple[Path, ...]:
    """Return the paths of pinned jars. Download the jars if they are not in the cache.

    Raises KdeclareError ``jars-unavailable``, ``jars-altered``, ``cache-folder``, or an error of Java or Ivy.
    """
    folder = get_cache_folder(environment)
    record_file = folder / f"{pinned_jars.name}.json"
    paths = _read_recorded_paths(record_file)
    if paths is not None and not find_altered(paths, pinned_jars.pins):
        return paths
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with hold_lock(folder / ".lock", lambda: progress("waiting for another download of Kafka's jars")):
            return _download(record_file, pinned_jars, progress, environment)
    except OSError as problem:
        raise KdeclareError(
            error(
                "cache-folder",
                "Cache folder cannot be used",
                f"The cache folder {folder} cannot be used: {problem.strerror or problem}.",
                hint=f"Set {CACHE_VARIABLE} to a writable folder.",
            )
        ) from problem


def get_cache_folder(environment: Mapping[str, str]) -> Path:
    """Return the cache folder for Kafka.

    It is in KDECLARE_CACHE_DIR or, by default, in the user's cache folder.
    """
    cache_path = environment.get(CACHE_VARIABLE)
    folder = Path(cache_path).expanduser() if cache_path else platformdirs.user_cache_path("kdeclare")
    return folder.absolute() / "kafka"


def read_pins(file: Path | None = None) -> dict[str, str]:
    """Return the SHA-256 of each jar in hexadecimal, by its path in a Maven repository.

    file: the file with the hashes (default: the file for Kafka's jars).
    """
    pins: dict[str, str] = json.loads((file or PINS).read_text("utf-8"))
    return pins


def find_altered(paths: Iterable[Path], pins: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of jars that are missing, are not pinned, or do not match their pinned hash."""
    by_name = {p.name: p for p in paths}
    pins_by_name = {PurePosixPath(path).name: pin for path, pin in pins.items()}
    altered_names = by_name.keys() ^ pins_by_name.keys()
    for name in by_name.keys() & pins_by_name.keys():
        try:
            if hash_file(by_name[name]) != pins_by_name[name]:
                altered_names.add(name)
        except OSError:
            altered_names.add(name)
    return tuple(sorted(altered_names))


def _read_recorded_paths(record_file: Path) -> tuple[Path, ...] | None:
    try:
        return tuple(Path(str(p)) for p in json.loads(record_file.read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _download(
    record_file: Path, pinned_jars: PinnedJars, progress: Progress, environment: Mapping[str, str]
) -> tuple[Path, ...]:
    pins = pinned_jars.pins
    recorded_paths = _read_recorded_paths(record_file)
    altered_names = find_altered(recorded_paths, pins) if recorded_paths is not None else ()
    if recorded_paths is not None and not altered_names:  # downloaded by a different process
        return recorded_paths
    for path in recorded_paths or ():
        if path.name in altered_names and path.is_relative_to(record_file.parent):
            path.unlink(missing_ok=True)  # Ivy would reuse the altered file
    count = f"{len(pins)} jars, " if len(pins) > 1 else ""
    progress(f"downloading {pinned_jars.what} ({count}{pinned_jars.size}, only the first time)")
    if environment.get(ivy.SETTINGS_VARIABLE) and not environment.get(MIRROR_VARIABLE):
        paths = _resolve_with_ivy(pinned_jars, record_file.parent, environment)
    else:
        paths = _download_from_repository(pinned_jars, record_file.parent, progress, environment)
    write_atomically(record_file, json.dumps([str(p) for p in paths], indent=1) + "\n")
    return paths


def get_default_repository() -> str:
    """Return the URL of the public Maven repository that contains Kafka's releases.

    The URL is a part of the package URL types, the standard names for packages of all ecosystems.
    """
    # Imported here because only the first start on a machine downloads files.
    from packageurl.contrib.purl2url import DEFAULT_MAVEN_REPOSITORY

    return DEFAULT_MAVEN_REPOSITORY


def _download_from_repository(
    pinned_jars: PinnedJars, cache: Path, progress: Progress, environment: Mapping[str, str]
) -> tuple[Path, ...]:
    """Download the jars from the mirror or, by default, from the public Maven repository."""
    repository = environment.get(MIRROR_VARIABLE) or get_default_repository()
    what, file_count = pinned_jars.what, len(pinned_jars.pins)

    def report(files: int, received: int) -> None:
        progress(f"downloading {what}: {files} of {file_count} files complete, {received / 1e6:.0f} MB")

    try:
        return download_files(pinned_jars.pins, cache / "jars", repository, report)
    except DownloadError as problem:
        raise _build_unavailable_error(pinned_jars, str(problem), cache) from problem
    except AlteredFilesError as problem:
        raise KdeclareError(
            error(
                "jars-altered",
                "Jars differ from the pinned jars",
                f"These files of {what} do not match their pinned hashes, and were deleted: "
                f"{', '.join(problem.names)}.",
                hint=f"Check the mirror in {MIRROR_VARIABLE}, if it is set, and any proxy between the "
                "repository and this machine. Then run the command again.",
            )
        ) from problem


def _resolve_with_ivy(
    pinned_jars: PinnedJars, cache: Path, environment: Mapping[str, str]
) -> tuple[Path, ...]:
    """Download the jars with the Ivy jar in PySpark, from the repositories in the user's Ivy settings."""
    folder = cache / "ivy"
    # Find Ivy first: without PySpark, an error about Java would be misleading.
    ivy.get_ivy_jar()
    try:
        paths = ivy.resolve(java.find_java(environment), pinned_jars.dependencies, folder, environment)
    except ivy.ResolutionError as problem:
        log_hint = f" See Ivy's output in {folder / 'ivy.log'}."
        raise _build_unavailable_error(pinned_jars, str(problem), cache, log_hint) from problem
    altered_names = find_altered(paths, pinned_jars.pins)
    if altered_names:
        raise KdeclareError(
            error(
                "jars-altered",
                "Jars differ from the pinned jars",
                f"These jars of {pinned_jars.what} are missing, are not pinned, or do not match their "
                f"pinned hashes: {', '.join(altered_names)}.",
                hint=f"Check your Ivy settings, delete the folder {cache}, and run the command again.",
            )
        )
    return paths


def _build_unavailable_error(
    pinned_jars: PinnedJars, reason: str, folder: Path, log_hint: str = ""
) -> KdeclareError:
    reason_text = f" ({reason})" if reason else ""
    home_text = f" {HOME_VARIABLE} to an installed Kafka," if pinned_jars.is_part_of_kafka else ""
    return KdeclareError(
        error(
            "jars-unavailable",
            "Jars could not be downloaded",
            f"The jars of {pinned_jars.what} are not in the cache {folder} and could not be "
            f"downloaded{reason_text}.",
            hint=f"Run the command once while online, or set{home_text}"
            f" {MIRROR_VARIABLE} to the URL of a Maven repository, or {ivy.SETTINGS_VARIABLE} to an"
            f" ivysettings.xml.{log_hint}",
        )
    )


def get_installed_kafka(home: Path) -> KafkaJars:
    """Return the version and the jars of the Kafka installation in a folder.

    Raises KdeclareError ``kafka-home`` if the folder does not contain Kafka 4.0 or later.
    """
    paths = tuple(sorted((home / "libs").glob("*.jar")))
    versions = [m.group(1) for p in paths if (m := re.fullmatch(r"kafka_2\.13-(\d[\w.-]*?)\.jar", p.name))]
    if not versions or int(versions[0].split(".")[0]) < 4:
        home_content = f"Kafka {versions[0]}" if versions else "no libs/kafka_2.13-*.jar"
        raise KdeclareError(
            error(
                "kafka-home",
                "KAFKA_HOME cannot be used",
                f"{HOME_VARIABLE} is {home}, which contains {home_content}. Kafka 4.0 or later is required.",
                hint=f"Set {HOME_VARIABLE} to a Kafka 4 installation, or unset it to download Kafka "
                f"{KAFKA_VERSION}.",
            )
        )
    return KafkaJars(versions[0], paths)
