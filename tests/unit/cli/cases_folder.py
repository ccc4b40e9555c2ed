"""Read the cases of `tests/cases`, set them up on an in-memory cluster, and render them as pages."""

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from kdeclare.providers.connect.client.port import ConnectWorkers
from kdeclare.providers.connect.testing import MemoryWorkers
from kdeclare.providers.connect.testing.workers import STATIC, Keystore
from kdeclare.providers.kafka.acl.binding import parse_binding
from kdeclare.providers.kafka.broker_config import CLUSTER_DEFAULT
from kdeclare.providers.kafka.client_quota.entity import QuotaEntity
from kdeclare.providers.kafka.consumer_group.group import CommittedOffset
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, TopicPartition
from kdeclare.providers.kafka.request_values import NewTopic
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.version import VERSION
from tests.beds import all_created
from tests.unit.cli.command_line import CommandLine, CommandResult

FOLDER = Path(__file__).parents[2] / "cases"
FORMATS = {"text": "output.txt", "markdown": "comment.md", "json": "output.json", "sarif": "log.sarif"}
_OF_APPLY = ("text", "json")
_RACKS = {1: "rack-a", 2: "rack-b", 3: "rack-c"}
_INPUTS = ("kdeclare.yaml", "applied", "manifests", "overlays", "live.yaml")
_APPLIED = "applied"
_TIMES = re.compile(r"(?<=\")\d{4}-\d\d-\d\dT[^\"]+Z(?=\")")
_LINEAGE = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_RUN = re.compile(r"\d{8}T\d{6}Z(\.\d{4})?-[0-9a-f]+")
_PLAN_ID = re.compile(r"(?<=Plan <code>)[0-9a-f]{64}|(?<=\"plan_id\": \")[0-9a-f]{64}")
_SECONDS = re.compile(r"(?<=\"seconds\": )[\d.]+|(?<=\nIn )[\d.]+ m?s(?=:)")


@dataclass(frozen=True)
class Case:
    """One folder of `tests/cases`.

    exit: the exit code, in every format. environ: environment variables. saved: whether a plan is saved as
    ``it.plan`` before the changes under ``meanwhile`` are made.
    """

    folder: Path
    group: str
    title: str
    about: str
    exit: int
    command: str = "plan --detailed-exitcode"
    environ: Mapping[str, str] = field(default_factory=dict)
    saved: bool = False

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.folder.name

    @property
    def formats(self) -> tuple[str, ...]:
        """The output formats of the command."""
        return _OF_APPLY if self.command.startswith("apply") else tuple(FORMATS)

    @property
    def live(self) -> Mapping[str, Any]:
        """The live state; empty if the case has no ``live.yaml``."""
        file = self.folder / "live.yaml"
        return yaml.safe_load(file.read_text()) if file.exists() else {}

    def inputs(self) -> Iterator[Path]:
        """Return its input files, in the order in which they are read."""
        for name in _INPUTS:
            path = self.folder / name
            yield from sorted(path.rglob("*.yaml")) if path.is_dir() else [path] * path.exists()


def read_cases() -> list[Case]:
    """Read all cases, sorted by group and then by name."""
    found = [_read_case(file.parent) for file in sorted(FOLDER.glob("*/case.yaml"))]
    groups = [line[3:] for line in (FOLDER / "ORDER").read_text().splitlines() if line.startswith("## ")]
    return sorted(found, key=lambda case: groups.index(case.group))


def _read_case(folder: Path) -> Case:
    return Case(folder, **yaml.safe_load((folder / "case.yaml").read_text()))


def set_up_case(case: Case, kdeclare: CommandLine) -> None:
    """Set up everything that the command needs."""
    kdeclare.cluster = _make_cluster(case.live)
    kdeclare.workers = _make_workers(case.live)
    for name, value in case.environ.items():
        kdeclare.monkeypatch.setenv(name, value)
    for file in case.inputs():
        path = kdeclare.folder / file.relative_to(case.folder)
        if file.name != "live.yaml":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(file.read_text())
    manifests, applied = kdeclare.folder / "manifests", kdeclare.folder / _APPLIED
    if applied.exists():
        manifests.rename(kdeclare.folder / "later")
        applied.rename(manifests)
        done = kdeclare("apply", "--yes", "--quiet")
        assert done.code == 0, done
        for file in manifests.iterdir():
            file.unlink()
        manifests.rmdir()
        (kdeclare.folder / "later").rename(manifests)
    for topic, traffic in case.live.get("traffic", {}).items():
        _add_traffic(kdeclare.cluster, topic, traffic)
    if case.saved:
        assert kdeclare("plan", "--out", "it.plan").code == 0
    for topic, configs in case.live.get("meanwhile", {}).items():
        kdeclare.cluster.set_overrides(ConfigResource(ConfigScope.TOPIC, topic), _format_configs(configs))


def run_case(case: Case, kdeclare: CommandLine, output: str) -> CommandResult:
    """Run the command with one of its output formats."""
    return kdeclare(*shlex.split(case.command), "--format", output)


def normalize_output(ran: CommandResult) -> str:
    """Return the output, with ids, times and versions replaced by constants."""
    text = ran.out + ran.err
    for pattern, instead in (
        (_TIMES, "2026-01-01T00:00:00Z"),
        (_LINEAGE, "LINEAGE"),
        (_RUN, "RUN"),
        (_PLAN_ID, "PLAN-ID"),
        (_SECONDS, "0.0"),
    ):
        text = pattern.sub(instead, text)
    return text.replace(f'"{VERSION}"', '"VERSION"')


def render_page(case: Case) -> str:
    """Render the case as a page: description, input, command and output."""
    parts = [f"# {case.title}", case.about.strip(), f"[All cases](../README.md) · {case.group}", "## Input"]
    if not case.live:
        parts.append("An empty cluster with three brokers on three racks.")
    for file in case.inputs():
        parts.append(
            f"{_format_label(file.relative_to(case.folder))}\n\n{_format_block(file.read_text(), 'yaml')}"
        )
    given = [f"{name}={shlex.quote(value)}" for name, value in case.environ.items()]
    saved = "$ kdeclare plan --out it.plan\n" if case.saved else ""
    typed = " ".join([*given, "kdeclare", case.command])
    parts += [
        "## Output",
        _format_block(f"{saved}$ {typed}\n{(case.folder / FORMATS['text']).read_text()}", "console"),
    ]
    parts.append(f"Exit code {case.exit}.")
    others = {"json": "for scripts", "sarif": "for annotations in files"}
    links = [f"[{FORMATS[f]}]({FORMATS[f]}), {why}" for f, why in others.items() if f in case.formats]
    if "markdown" in case.formats:
        parts += ["## On a pull request", (case.folder / FORMATS["markdown"]).read_text().strip()]
        parts[-1] = re.sub(r"^(#+) ", r"#\1 ", parts[-1], flags=re.MULTILINE)
    parts.append(f"Also: {'; '.join(links)}.")
    return "\n\n".join(parts) + "\n"


def render_index(found: list[Case]) -> str:
    """Render the page that lists all cases."""
    intro = (FOLDER / "ORDER").read_text()
    for group in dict.fromkeys(case.group for case in found):
        rows = [
            f"| [{case.title}]({case.name}/README.md) | `{case.command}` | {case.exit} |"
            for case in found
            if case.group == group
        ]
        table = "\n".join(["| case | `kdeclare` … | exit |", "|---|---|---:|", *rows])
        intro = intro.replace(f"## {group}\n", f"## {group}\n\n{table}\n")
    return intro


def _format_label(path: Path) -> str:
    if path.name == "live.yaml":
        return "Live state of the cluster:"
    if path.parts[0] == _APPLIED:
        return f"`{Path('manifests', *path.parts[1:])}`, as last applied:"
    return f"`{path}`:"


def _format_block(text: str, language: str) -> str:
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text.strip()}\n{fence}"


def _make_cluster(live: Mapping[str, Any]) -> MemoryCluster:
    cluster = MemoryCluster(live.get("brokers", _RACKS))
    for name, has in live.get("topics", {}).items():
        placed = {n: tuple(replicas) for n, replicas in has["replicas"].items()}
        made = cluster.create_topics(
            [NewTopic(name, None, None, placed, _format_configs(has.get("configs", {})))]
        )
        assert all_created(made), made
        cluster.produce(name, has.get("records", 0))
    for broker, disk in live.get("disks", {}).items():
        cluster.disk_sizes[broker], cluster.usable[broker] = disk["size"], disk["free"]
    for name, configs in live.get("brokerConfigs", {}).items():
        entity = "" if name == CLUSTER_DEFAULT else str(name)
        cluster.set_overrides(ConfigResource(ConfigScope.BROKER, entity), _format_configs(configs))
    for text, configs in live.get("listedConfigs", {}).items():
        scope, _, name = text.partition("/")
        cluster.set_overrides(ConfigResource(ConfigScope(scope), name), configs)
    for quota in live.get("clientQuotas", ()):
        limits = {key: float(value) for key, value in quota["limits"].items()}
        assert set(cluster.alter_quotas({QuotaEntity.from_json(quota["entity"]): limits}).values()) == {None}
    bindings = [parse_binding(text) for text in live.get("acls", ())]
    assert set(cluster.create_acls(bindings).values()) <= {None}
    cluster.calls.clear()
    return cluster


def _add_traffic(cluster: MemoryCluster, topic: str, traffic: Mapping[str, Any]) -> None:
    """Put records into a topic, and let groups commit an offset for each partition."""
    cluster.produce(topic, traffic["records"], at_ms=round(traffic["newest"].timestamp() * 1000))
    for group, offset in traffic.get("groups", {}).items():
        cluster.add_group(group)
        partitions = range(len(cluster.topics([topic])[topic].partitions))
        offsets = {TopicPartition(topic, number): CommittedOffset(offset) for number in partitions}
        assert set(cluster.groups.alter_offsets({group: offsets}).values()) == {None}


def _make_workers(live: Mapping[str, Any]) -> dict[tuple[str, ...], ConnectWorkers]:
    if "connectWorkers" not in live:
        return {}
    workers = MemoryWorkers(tuple(live["connectWorkers"]["urls"]))
    workers.files = dict.fromkeys(live["connectWorkers"]["keystores"], Keystore(STATIC))
    return {workers.urls: workers}


def _format_configs(configs: Mapping[str, Any]) -> dict[str, str]:
    return {key: ",".join(value) if isinstance(value, list) else str(value) for key, value in configs.items()}


def parse_json(text: str) -> Any:
    """Parse a golden JSON file."""
    return json.loads(text)
