"""Options that several commands of ``kdeclare fleet`` share."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kdeclare.cli.options.option_values import parse_pairs
from kdeclare.cli.options.single_options import validate_duration
from kdeclare.core.frozen_dataclass import dataclass

if TYPE_CHECKING:
    from kdeclare.app.fleet.job import FleetOptions

EngineName = Annotated[
    Literal["auto", "local", "spark"],
    typer.Option(
        "--engine",
        help="The engine that reads and compares the clusters. local: this process; needs no Java, but all "
        "folders must be local. spark: Spark, for fleets of any size. auto: start in this process, and "
        "continue on Spark if the fleet is large.",
    ),
]
FleetFile = Annotated[Path, typer.Argument(metavar="FLEET", help="The fleet file (kind Fleet).")]


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """Options for Spark, and for the folder of snapshots, audits or plans."""

    out: Annotated[
        str,
        typer.Option(
            metavar="DIR",
            help="Folder of snapshots, audits or plans: a local folder, or a location that Spark can "
            "write to.",
        ),
    ]
    master: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Spark master: local[N], spark://…, yarn or k8s://…, or a Spark Connect server: "
            "sc://HOST:PORT/;use_ssl=true (default: from Spark's own settings, otherwise local[*]).",
        ),
    ] = None
    conf: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="Spark setting; takes precedence over kdeclare's own settings. Repeatable.",
        ),
    ] = None
    shared_folders: Annotated[
        bool,
        typer.Option(
            "--shared-folders",
            help="Declare that local folders are mounted at the same path on every executor. Required if DIR "
            "is a local folder, unless the Spark master is local[N].",
        ),
    ] = False

    def results_options(self, engine: str) -> "FleetOptions":
        """Build the `FleetOptions` of a command that reads only stored results, and no fleet file.

        Raises BadParameter.
        """
        from kdeclare.app.fleet.job import Engine, FleetOptions

        return FleetOptions(
            Path(),
            self.out,
            master=self.master,
            conf=parse_pairs("--conf", self.conf),
            shared_folders=self.shared_folders,
            engine=Engine(engine),
        )


@dataclass(frozen=True, slots=True)
class FleetClusterOptions(SparkOptions):
    """Spark options, and options that select clusters of the fleet."""

    cluster: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this cluster of the fleet. Repeatable.")
    ] = None
    cluster_selector: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Only clusters with this label. Repeatable."),
    ] = None
    timeout: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=0.1,
            callback=validate_duration,
            help="How long to wait for a response from each cluster.",
        ),
    ] = 10.0

    def options(self, fleet: Path, engine: str = "auto") -> "FleetOptions":
        """Build the `FleetOptions` for a fleet file from these options. Raises BadParameter."""
        from kdeclare.app.fleet.job import Engine, FleetOptions

        return FleetOptions(
            fleet,
            self.out,
            tuple(self.cluster or ()),
            parse_pairs("--cluster-selector", self.cluster_selector),
            self.master,
            parse_pairs("--conf", self.conf),
            self.timeout,
            self.shared_folders,
            Engine(engine),
        )
