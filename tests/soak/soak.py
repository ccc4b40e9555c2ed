"""The course of a soak: steps in which much happens at the same time, and checks after every few steps."""

import copy
import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from kdeclare.core.exit_codes import ExitCode
from tests.soak.checker import ADHOC_PREFIX, Checker, count_operations, find_state_violations
from tests.soak.cluster import BROKERS, SoakCluster, run_soak_cluster
from tests.soak.desired import TOPIC_KEYS, TOPICS, Desired
from tests.soak.live import read_live
from tests.soak.members import Finished, Team, draw_fate
from tests.soak.other_client import OtherClient
from tests.soak.stores import open_soak_store
from tests.soak.tcp_proxy import NetworkFault

STEPS_BETWEEN_CHECKS = 3
_DELETES = ("--allow-deletes", "--max-deletes", "100%")
_SETTLE_ATTEMPTS = 6
_VISIBLE_S = 20.0
Task = Callable[[], object]


@dataclass
class Report:
    """The figures of a soak, and its violations."""

    seed: int
    store: str
    seconds: float = 0.0
    steps: int = 0
    settles: int = 0
    settle_attempts: int = 0
    figures: dict[str, dict[str, int]] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [
            f"seed {self.seed}, store {self.store}: {self.steps} steps and {self.settles} checks in "
            f"{self.seconds / 60:.1f} min; {self.settle_attempts} final applies"
        ]
        for title, counts in self.figures.items():
            lines.append(f"{title}: " + ", ".join(f"{name} {n}" for name, n in sorted(counts.items())))
        lines.append(f"violations: {len(self.violations)}")
        return "\n".join([*lines, *self.violations])


@dataclass
class Soak:
    """A soak in progress."""

    chance: random.Random
    cluster: SoakCluster
    team: Team
    other: OtherClient
    checker: Checker
    report: Report
    desired: Desired = field(default_factory=Desired)
    _notes: list[str] = field(default_factory=list)
    _explained: int = 0
    _reported: set[str] = field(default_factory=set)

    def prepare(self) -> None:
        """Declare a few resources, apply them, and write records to the topics that are moved."""
        for _ in range(12):
            self.desired.change(self.chance)
        self.desired.moves = {}
        self._settle()
        self.other.produce()

    def run(self, seconds: float, progress: Callable[[str], None], most_violations: int) -> None:
        """Run steps and checks until the time is over, or until there are too many violations."""
        started, shown = time.monotonic(), 0
        self.prepare()
        while time.monotonic() - started < seconds and len(self.report.violations) <= most_violations:
            for _ in range(STEPS_BETWEEN_CHECKS):
                self._step()
            self._settle()
            for violation in self.report.violations[shown:]:
                progress(violation)
            shown = len(self.report.violations)
            progress(f"{time.monotonic() - started:.0f} s: {self.report.steps} steps, {self._summarize()}")
        self.report.seconds = time.monotonic() - started

    def _summarize(self) -> str:
        fates, faults = dict(self.team.fates), dict(self.cluster.faults)
        return f"{fates}, {faults}, {len(self.report.violations)} violations"

    # steps

    def _step(self) -> None:
        """Let commands, faults and another client run at the same time, until all have ended."""
        self.report.steps += 1
        self._notes = [f"step {self.report.steps}"]
        for _ in range(self.chance.randint(2, 8)):
            self._change_desired()
        for member in self.team.names:
            if self.chance.random() < 0.8:  # otherwise, the member has older manifests
                self.team.declare(member, self.desired)
        tasks: list[Task] = [self._draw_commands(member) for member in self.team.names]
        tasks += [self._draw_change() for _ in range(self.chance.randint(0, 3))]
        if self.chance.random() < 0.5:
            tasks.append(self._draw_fault())
        with ThreadPoolExecutor(len(tasks)) as pool:
            for done in [pool.submit(task) for task in tasks]:
                done.result()
        self._collect_violations()

    def _change_desired(self) -> None:
        before = set(self.desired.topics)
        self._notes.append(self.desired.change(self.chance))
        self.checker.may_vanish |= before - self.desired.topics.keys()

    def _draw_change(self) -> Task:
        chance = random.Random(self.chance.random())

        def change() -> None:
            time.sleep(chance.uniform(0, 4))
            self._notes.append(self.other.act(chance))

        return change

    def _draw_fault(self) -> Task:
        chance = random.Random(self.chance.random())
        broker = chance.choice(BROKERS)
        start_s, lasts_s = chance.uniform(0, 3), chance.uniform(2, 8)
        kind = chance.choices(["broker", "controller", *NetworkFault], [2, 2, 2, 2, 2, 1, 1])[0]
        self._notes.append(f"fault: {kind}, broker {broker}, after {start_s:.1f} s for {lasts_s:.1f} s")

        def cause() -> None:
            time.sleep(start_s)
            if kind == "broker":
                self.cluster.restart_broker(broker, lasts_s, "broker killed")
            elif kind == "controller":
                controller = self.cluster.find_controller()
                self.cluster.restart_broker(controller, lasts_s, "controller killed")
            else:
                self.cluster.disturb_network(broker, NetworkFault(kind), lasts_s)

        return cause

    def _draw_commands(self, member: str) -> Task:
        """Choose what a member does: a few commands, one after the other."""
        chance, step = random.Random(self.chance.random()), self.report.steps
        draws = [self._draw_apply, self._draw_plan, self._draw_rollback, self._draw_adhoc, self._draw_look]
        calls: list[Task] = []
        for _ in range(chance.choice([1, 1, 2, 3])):
            commands = chance.choices(draws, [38, 22, 12, 16, 12])[0](chance)
            in_run = chance.random() < 0.75
            fate, after_s = draw_fate(chance), chance.uniform(0, 2.5) if in_run else chance.uniform(0.5, 4)
            run_command = partial(self.team.run, step, member)
            calls += (partial(run_command, *arguments) for arguments in commands[:-1])
            calls.append(partial(run_command, *commands[-1], fate=fate, after_s=after_s, in_run=in_run))
        start_s = chance.uniform(0, 3)

        def run() -> None:
            time.sleep(start_s)
            for call in calls:
                call()

        return run

    @staticmethod
    def _draw_options(chance: random.Random) -> tuple[str, ...]:
        adopt = ("--adopt",) if chance.random() < 0.6 else ()
        deletes = _DELETES if chance.random() < 0.5 else ()
        return (*adopt, *deletes)

    def _draw_apply(self, chance: random.Random) -> list[tuple[str, ...]]:
        no_wait = ("--no-wait",) if chance.random() < 0.15 else ()
        return [("apply", "--yes", *no_wait, *self._draw_options(chance))]

    def _draw_plan(self, chance: random.Random) -> list[tuple[str, ...]]:
        file = f"{chance.randrange(10**9)}.plan"
        skip = ("--skip-stale",) if chance.random() < 0.3 else ()
        return [("plan", "--out", file, *self._draw_options(chance)), ("apply", file, "--yes", *skip)]

    def _draw_rollback(self, chance: random.Random) -> list[tuple[str, ...]]:
        self.checker.mark_rollback(self.desired)
        return [("rollback", "--yes")]

    def _draw_adhoc(self, chance: random.Random) -> list[tuple[str, ...]]:
        name = f"{ADHOC_PREFIX}{chance.randint(1, 4)}"
        kind = chance.random()
        if kind < 0.3:
            return [("topic", "create", name, "--partitions", "1", "--if-not-exists", "--yes")]
        if kind < 0.5:
            return [("topic", "delete", name, "--if-exists", "--yes")]
        topic, key = chance.choice(TOPICS), chance.choice(list(TOPIC_KEYS))
        value = str(chance.randint(*TOPIC_KEYS[key]))
        self.other.drift[topic, key].add(value)
        change = ("--add-config", f"{key}={value}")
        return [("config", "alter", "--topic", topic, *change, "--if-exists", "--yes")]

    @staticmethod
    def _draw_look(chance: random.Random) -> list[tuple[str, ...]]:
        return [
            chance.choice(
                [("plan", "--detailed-exitcode"), ("status",), ("history",), ("status", "--watch"), ("plan",)]
            )
        ]

    # checks

    def _settle(self) -> None:
        """End all faults, apply the project until nothing is left to do, and check everything."""
        self.cluster.heal()
        self.report.settles += 1
        for member in self.team.names:
            self.team.declare(member, self.desired)
        member = self.chance.choice(self.team.names)
        outcomes: list[Finished] = []
        for _ in range(_SETTLE_ATTEMPTS):
            self.report.settle_attempts += 1
            attempt = [
                self._run_calm(member, "apply", "--yes", "--adopt", *_DELETES),
                self._run_calm(member, "status", "--watch"),
                self._run_calm(member, "plan", "--detailed-exitcode"),
            ]
            outcomes += attempt
            if all(done.code == ExitCode.OK for done in attempt):
                break
            self._remove_returned_configs(attempt[-1].out)
        else:
            texts = (f"{done}\n{done.out[-2500:]}\n{done.err[-1500:]}" for done in outcomes[-3:])
            self.report.violations.append(f"step {self.report.steps}: no convergence\n" + "\n".join(texts))
        self._check(member)
        self._collect_violations()

    def _remove_returned_configs(self, plan: str) -> None:
        """Set and delete the keys that the plan deletes once more, as Kafka's own fault requires."""
        with self.cluster.open_admin() as admin:
            live = read_live(admin)
            for name, topic in live.topics.items():
                self.checker.remember(name, topic.id)
            for name, key in self.checker.list_undeletable(self.desired, live):
                if f"Topic/{name} " in plan and f" {key}  DELETE" in plan:
                    self.checker.returned.add((name, key, "deleted twice"))
                    self.other.set_and_delete(admin, name, key)

    def _run_calm(self, member: str, *arguments: str) -> Finished:
        return self.team.run(self.report.steps, member, *arguments, is_calm=True)

    def _check(self, member: str) -> None:
        deadline = time.monotonic() + _VISIBLE_S
        while True:  # brokers show changes with a delay
            with self.cluster.open_admin() as admin:
                live = read_live(admin)
            violations = self.checker.find_violations(self.desired, live)
            if not violations or time.monotonic() > deadline:
                break
            time.sleep(0.5)
        if not violations:
            self.checker.accept(live)
        stored = self.team.store.read()
        violations += find_state_violations(stored, self.desired)
        lock = self._run_calm(member, "lock", "show")
        if not lock.out.startswith("Not locked."):
            violations.append(f"the lock is held: {lock.out}{lock.err}")
        history = self._run_calm(member, "history", "--limit", "0")
        missing = [run_id for run_id in stored.journals if run_id not in history.out]
        if history.code != ExitCode.OK or missing:
            violations.append(f"the history does not show {missing}: {history.out[-500:]}{history.err}")
        left = len(list(self.team.temporary.iterdir()))
        if left > self.team.fates["SIGKILL"]:
            violations.append(f"{left} temporary files were left behind")
        # A journal does not change any more, so it would be reported by every check.
        new = [one for one in violations if one not in self._reported]
        self._reported.update(new)
        self.report.violations += (f"step {self.report.steps}: {one}" for one in new)
        self.report.figures = {
            "journals": dict(count_operations(stored)),
            "commands": dict(self.team.counts),
            "exit codes": {str(code): number for code, number in self.team.codes.items()},
            "errors": dict(self.team.errors),
            "what happened to commands": dict(self.team.fates),
            "faults": dict(self.cluster.faults),
            "disturbed connections": self._count_connections(),
            "changes by another client": dict(self.other.counts),
            "Kafka's own faults": {"returned configs of deleted topics": len(self.checker.returned)},
        }

    def _count_connections(self) -> dict[str, int]:
        totals: dict[str, int] = {}
        for proxy in self.cluster.proxies.values():
            for fault, number in proxy.affected.items():
                totals[str(fault)] = totals.get(str(fault), 0) + number
        return totals

    def _collect_violations(self) -> None:
        before = self._explained
        self.report.violations += self.team.violations
        self.team.violations.clear()
        if len(self.report.violations) > before:
            commands = "\n  ".join(map(str, self.team.last))
            self.report.violations[-1] += f"\nnotes: {self._notes}\nthe last commands:\n  {commands}"
        self._explained = len(self.report.violations)


@contextmanager
def open_soak(folder: Path, seed: int, store: str) -> Iterator[Soak]:
    """Start the brokers, and prepare a storage and a project."""
    with ExitStack() as stack:
        cluster = stack.enter_context(run_soak_cluster(folder / "brokers", seed))
        opened = stack.enter_context(open_soak_store(store, folder, cluster.bootstrap))
        other = OtherClient(cluster)
        team = Team(folder / "team", cluster.proxied, opened)
        yield Soak(random.Random(seed), cluster, team, other, Checker(other), Report(seed, store))


def run_soak(
    folder: Path,
    seconds: float,
    seed: int,
    store: str,
    progress: Callable[[str], None] = print,
    most_violations: int = 0,
) -> Report:
    """Run a soak, and return its report."""
    with open_soak(folder, seed, store) as soak:
        soak.run(seconds, progress, most_violations)
        return copy.copy(soak.report)
