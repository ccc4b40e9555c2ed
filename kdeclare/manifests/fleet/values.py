"""A fleet as values: what a fleet file says, ready for use."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kdeclare.core.diagnostics import Diagnostic, Place
from kdeclare.manifests.substitution import Variable


@dataclass(frozen=True, slots=True)
class ClusterEntry:
    """One cluster of a fleet. Paths are ready to be opened, values stay out of its repr.

    project: its file; None where the entry says all itself. env: which environment of it; None is the
        project's default.
    bootstrap_servers, client_config, client_config_file, state: with a project, instead of what it says;
        None where nothing is said. state is a folder or a URI.
    selector: labels; only declared resources with all of them are looked at.
    source: where its name stands; places: where its fields do, and those of lists by ``field.index``.
    unresolved: references in it that lead nowhere. Whoever uses the entry has to do with them.
    """

    name: str
    labels: Mapping[str, str]
    project: Path | None
    env: str | None
    bootstrap_servers: str | None
    client_config: Mapping[str, str] | None = field(repr=False)
    client_config_file: Path | None
    manifests: tuple[Path, ...]
    overlays: tuple[Path, ...]
    variables: Mapping[str, Variable] = field(repr=False)
    state: str | None
    selector: Mapping[str, str]
    source: Place
    places: Mapping[str, Place] = field(default_factory=dict, repr=False, compare=False)
    unresolved: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True)
class Rollout:
    """In which order clusters are changed.

    canary: labels of those that come first. batch_size: how many clusters are begun together; None is as
        many as can be. max_failures: how many may fail before no more are begun.
    """

    canary: Mapping[str, str] = field(default_factory=dict)
    batch_size: int | None = None
    max_failures: int = 0


@dataclass(frozen=True, slots=True)
class Fleet:
    """A fleet file, read.

    max_concurrent: how many clusters are worked on at the same time.
    all_overlays: of all clusters that are written out; folders of manifests may hold them.
    left_out: names of clusters that it has besides, and that were not chosen.
    """

    name: str
    file: Path
    folder: Path
    clusters: tuple[ClusterEntry, ...]
    max_concurrent: int = 16
    rollout: Rollout = Rollout()
    all_overlays: tuple[Path, ...] = ()
    left_out: tuple[str, ...] = ()
