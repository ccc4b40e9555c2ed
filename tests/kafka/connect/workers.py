"""Stock Connect workers with the plug-in, on one broker: started, killed and read."""

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from kdeclare.java import find_java
from kdeclare.providers.connect.client.plugin.jar import EXTENSION
from kdeclare.sandbox import processes
from kdeclare.sandbox.broker_properties import render
from kdeclare.sandbox.connect_jars import ConnectJars
from kdeclare.sandbox.processes import ProcessRecord
from tests.kafka.connect.asking import HOST, WorkerClient, create_tls_context
from tests.kafka.connect.certificates import PASSWORD, Certificates
from tests.startup_cache import WORKER, archive_options

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"

OPEN = "kdeclare.worker.config.open"

# Each worker's environment variable for its own folder, for placeholders that differ between workers.
OWN_FOLDER = "KDECLARE_TEST_WORKER"

_QUICK = ("-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
_JVM = (*_QUICK, *archive_options(WORKER))
_LOGGING = Path(__file__).with_name("log4j2-worker.properties")
_DISTRIBUTED = "org.apache.kafka.connect.cli.ConnectDistributed"
_STANDALONE = "org.apache.kafka.connect.cli.ConnectStandalone"
_START_SECONDS = 300.0
_Found = TypeVar("_Found")


def wait_for_result(what: Callable[[], _Found], seconds: float = 120.0, every: float = 0.05) -> _Found:
    """Return the first true result of a function, or raise an error with its last result."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            found = what()
            if found:
                return found
            last: object = found
        except OSError as problem:  # not available yet, or unavailable for a moment
            last = problem
        assert time.monotonic() < deadline, f"not within {seconds} s: {last}"
        time.sleep(every)


@dataclass
class Worker:
    """One worker: its configuration, and its process while it runs."""

    name: str
    port: int
    folder: Path
    certificates: Certificates
    jars: ConnectJars
    properties: dict[str, str]
    main: str = _DISTRIBUTED
    running: ProcessRecord | None = None
    tls: bool = True

    @property
    def ask(self) -> WorkerClient:
        """Return a client with a certificate."""
        return WorkerClient(self.port, create_tls_context(self.certificates) if self.tls else None)

    @property
    def ask_unidentified(self) -> WorkerClient:
        """Return a client without a certificate."""
        return WorkerClient(self.port, create_tls_context(self.certificates, identified=False))

    @property
    def log(self) -> Path:
        """Return the log of all its processes."""
        return self.folder / "worker.log"

    def read_log(self) -> str:
        """Return the text of its log."""
        return self.log.read_text("utf-8", "replace") if self.log.exists() else ""

    def spawn(self) -> None:
        """Start its process."""
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / "worker.properties"
        file.write_text(render(self.properties), "latin-1")
        mark = f"-Dkdeclare.test.worker={self.folder}"
        logging = f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}"
        command = [find_java(), mark, logging, *_JVM, self.main, str(file)]
        environment = {**os.environ, "CLASSPATH": self.jars.classpath, OWN_FOLDER: str(self.folder)}
        self.running = processes.spawn(command, environment, self.log, mark)

    def await_ready(self) -> None:
        """Return when it serves requests and has a leader, if it is a distributed worker."""

        def ready() -> bool:
            assert self.running is not None
            assert processes.is_alive(self.running), f"{self.name} ended: {self.read_log()[-3000:]}"
            # A worker that is not a member yet responds with an error.
            return self.ask("GET", "/connectors").status == 200

        wait_for_result(ready, _START_SECONDS, 0.2)

    def start(self) -> None:
        """Spawn it and wait until it is ready."""
        self.spawn()
        self.await_ready()

    def kill(self) -> None:
        """Kill it, as in a crash."""
        if self.running is not None:
            processes.send_signal(self.running, signal.SIGKILL)
            processes.await_exit([self.running], 10)
            self.running = None

    def stop(self) -> None:
        """Stop it, as an operator does."""
        if self.running is not None:
            processes.terminate([self.running], 20, 20)
            self.running = None


@dataclass
class Workshop:
    """Creates workers on one broker, and ends them. ``login``: if the broker requires a password."""

    bootstrap: str
    login: str
    folder: Path
    certificates: Certificates
    jars: ConnectJars
    plugins: Path
    ports: Iterator[int]
    made: list[Worker] = field(default_factory=list)

    def worker(self, name: str, group: str, more: Mapping[str, str] | None = None) -> Worker:
        """Create a distributed worker with HTTPS and the plug-in. ``more`` wins; "" removes a key."""
        return self._worker(name, {**self._distributed(group), **(more or {})}, _DISTRIBUTED)

    def standalone(self, name: str, more: Mapping[str, str]) -> Worker:
        """Create a standalone worker. Not started."""
        own = {"offset.storage.file.filename": str(self.folder / name / "offsets")}
        return self._worker(name, {**own, **more}, _STANDALONE)

    def close(self) -> None:
        """Stop all of them."""
        running = [w.running for w in self.made if w.running is not None]
        processes.terminate(running, 10, 5)

    def _worker(self, name: str, more: Mapping[str, str], main: str) -> Worker:
        port = next(self.ports)
        found = {**self._common(port), **more}
        properties = {key: value for key, value in found.items() if value}
        folder = self.folder / name
        made = Worker(name, port, folder, self.certificates, self.jars, properties, main)
        self.made.append(made)
        return made

    def _common(self, port: int) -> dict[str, str]:
        # Plain ssl.* keys and required client certificates, which one careless override would undo.
        return {
            "bootstrap.servers": self.bootstrap,
            "key.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "plugin.path": str(self.plugins),
            "plugin.discovery": "service_load",
            "rest.extension.classes": EXTENSION,
            OPEN: "true",
            "listeners": f"https://{HOST}:{port}",
            "rest.advertised.host.name": HOST,
            "ssl.keystore.location": str(self.certificates.store("static")),
            "ssl.keystore.password": PASSWORD,
            "ssl.key.password": PASSWORD,
            "ssl.keystore.type": "PKCS12",
            "ssl.truststore.location": str(self.certificates.trust),
            "ssl.truststore.password": PASSWORD,
            "ssl.truststore.type": "PKCS12",
            "ssl.client.auth": "required",
            "config.providers": "file,env",
            "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
            "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
        }

    def _distributed(self, group: str) -> dict[str, str]:
        topics = {
            f"{kind}.storage.{key}": value
            for kind in ("config", "offset", "status")
            for key, value in (("topic", f"{group}-{kind}"), ("replication.factor", "1"))
        }
        return {
            **topics,
            "group.id": group,
            "offset.storage.partitions": "1",
            "status.storage.partitions": "1",
            "heartbeat.interval.ms": "1000",
            "session.timeout.ms": "6000",
            "rebalance.timeout.ms": "10000",
            "scheduled.rebalance.max.delay.ms": "3000",
        }


@dataclass
class Crew:
    """The workers of one group."""

    workers: Sequence[Worker]
    certificates: Certificates

    def leader(self) -> Worker:
        """Return the leader."""
        wait_for_result(lambda: any(w.ask.status()["leader"] for w in self.workers))
        return next(w for w in self.workers if w.ask.status()["leader"])

    def followers(self) -> list[Worker]:
        """Return the others."""
        leading = self.leader()
        return [w for w in self.workers if w is not leading]

    def await_served(self, sha256: str) -> None:
        """Return when a new handshake with each of them receives this certificate."""
        for worker in self.workers:
            wait_for_result(lambda worker=worker: worker.ask.read_served_sha256() == sha256)  # type: ignore[misc]

    def await_settled(self) -> None:
        """Return when all of them have applied the last update that any of them has seen."""

        def settled() -> bool:
            statuses = [w.ask.status() for w in self.workers]
            applied = {s["applied"]["offset"] for s in statuses if s["applied"]}
            return len(applied) <= 1 and all(s["seen"] is None or s["applied"] for s in statuses)

        wait_for_result(settled)

    def clean(self) -> None:
        """Remove all overrides, on all workers."""
        leading = self.leader()
        there = leading.ask.overrides()
        if there:
            answer = leading.ask.patch(dict.fromkeys(there))
            assert answer.status == 200, answer.text
        self.await_served(self.certificates.sha256["static"])
        self.await_settled()


@contextmanager
def run_workers(workers: Sequence[Worker]) -> Iterator[None]:
    """Run these workers during the block."""
    try:
        for worker in workers:
            worker.spawn()
        for worker in workers:
            worker.await_ready()
        yield
    finally:
        processes.terminate([w.running for w in workers if w.running is not None], 10, 5)
        for worker in workers:
            worker.running = None
