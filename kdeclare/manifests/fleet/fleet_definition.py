"""The contents of a fleet file."""

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from pydantic import BaseModel

from kdeclare.core.diagnostics import Diagnostic, SourcePosition
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.manifests.fleet.manifest_links import ManifestLinks
from kdeclare.manifests.fleet.notification_target import NotificationTarget
from kdeclare.manifests.fleet.rollout import Rollout
from kdeclare.manifests.syntax.substitution import Variable


@dataclass(frozen=True, slots=True)
class ClusterEntry:
    """One cluster of a fleet. Paths are resolved. The repr omits values that can be secrets.

    project: the project file, or None if the cluster is defined inline.
    env: the environment of the project, or None for the default environment.
    bootstrap_servers, client_config, client_config_file: the connection settings, or None if not set. They
        override the settings of the project.
    state: the folder or URI of the state, or None if not set. It overrides the state of the project.
    selector: the labels that a declared resource must have to be used for this cluster.
    source: the position of the cluster's name in the fleet file.
    places: the position of each field. The key for an element of a list is ``field.index``.
    unresolved: the errors for references that cannot be resolved. They are reported only if the cluster is
        used.
    providers: for an inline cluster, the connection settings of systems other than Kafka, by provider name.
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
    source: SourcePosition
    places: Mapping[str, SourcePosition] = field(default_factory=dict, repr=False, compare=False)
    unresolved: tuple[Diagnostic, ...] = ()
    providers: Mapping[str, BaseModel] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Fleet:
    """The contents of a fleet file.

    clusters: the selected clusters.
    max_concurrent: the maximum number of clusters to process at the same time.
    all_overlays: the overlays of all inline clusters. Overlays are not loaded as manifests, even if they are
        in a folder of manifests.
    left_out: the names of the clusters that were not selected.
    accepted_drift: the files and folders with documents of kind AcceptedDrift, each with its position in the
        fleet file.
    manifest_links: builds the URLs of manifests; None if the fleet file has no template for them.
    notifications: the webhooks that get messages about audits.
    report_url: the URL of the report of audits, with unresolved references; None if there is none.
    unused_for_s: the time without use after which an object counts as unused, in seconds; None if audits do
        not report unused objects.
    """

    name: str
    file: Path
    folder: Path
    clusters: tuple[ClusterEntry, ...]
    max_concurrent: int = 16
    rollout: Rollout = Rollout()
    all_overlays: tuple[Path, ...] = ()
    left_out: tuple[str, ...] = ()
    accepted_drift: Mapping[Path, SourcePosition] = field(default_factory=dict, repr=False, compare=False)
    manifest_links: ManifestLinks | None = None
    notifications: tuple[NotificationTarget, ...] = ()
    report_url: str | None = None
    unused_for_s: float | None = None
