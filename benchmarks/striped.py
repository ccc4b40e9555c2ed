"""Run Kafka's own placer from its jars, without a broker."""

import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kdeclare.providers.kafka.live import Broker
from kdeclare.sandbox import resolve_kafka_classpath

Assignment = Mapping[str, tuple[tuple[int, ...], ...]]

_SOURCE = Path(__file__).with_name("StripedPlacement.java")


@dataclass(frozen=True, slots=True)
class StripedPlacer:
    """``org.apache.kafka.metadata.placement.StripedReplicaPlacer``, compiled into a folder."""

    java: str
    classpath: str

    @classmethod
    def compiled(cls, folder: Path) -> "StripedPlacer":
        """Compile the small wrapper program. Raises RuntimeError without a JDK."""
        java, javac = shutil.which("java"), shutil.which("javac")
        if java is None or javac is None:
            raise RuntimeError(
                "Kafka's placer is compiled at run time, which requires java and javac on PATH"
            )
        jars = resolve_kafka_classpath()
        subprocess.run([javac, "-cp", jars, "-d", str(folder), str(_SOURCE)], check=True)
        return cls(java, f"{folder}:{jars}")

    def place(
        self, brokers: Sequence[Broker], sizes: Mapping[str, int], factor: int
    ) -> tuple[Assignment, float]:
        """Place topics, given their numbers of partitions by name. Return the assignment and the seconds."""
        lines = [f"broker {broker.id} {broker.rack}" for broker in brokers]
        lines += [f"topic {count} {factor}" for count in sizes.values()]
        command = [self.java, "-cp", self.classpath, _SOURCE.stem]
        done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=True)
        *placed, timed = done.stdout.splitlines()
        return _by_topic(sizes, placed), float(timed.split()[1])


def _by_topic(sizes: Mapping[str, int], lines: Iterable[str]) -> Assignment:
    partitions = iter([tuple(int(word) for word in line.split()) for line in lines])
    return {name: tuple(next(partitions) for _ in range(count)) for name, count in sizes.items()}
