"""Which part of a project a plan is about, as commands and programs say it."""

from dataclasses import dataclass, replace

from kdeclare.engine.planning.request import PlanScope
from kdeclare.providers.kafka.plan_options import find_kafka_options


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope(PlanScope):
    """Which part of the project a plan is about, and what it may do.

    complete: whether all of the project's manifests were loaded; what is not declared is orphaned only then.
    targets, selector: None and empty mean everything.
    adopt: whether what exists and is not owned is adopted although it differs (see `core.adoption`).
    overrides: policies whose denials are not heeded, each with the reason.
    deletes: orphans to delete, named one by one; they need no ``allow_deletes``.
    max_deletes: how many resources of a kind may be deleted; None is the default.
    allow_empty: whether a project that owns something may declare nothing.
    by_hand: what is desired is asked for by a command: it is compared as if nothing were owned, and nothing
        comes to be owned or is let go of. removals: what such a command deletes, owned or not. protected:
        those of them that manifests say must not be destroyed.
    visibility_timeout_s: how long to wait for brokers to show owned topics that exist.
    options: what was chosen about single systems; each part belongs to a provider. What was chosen about
        Kafka can be given in fields of its own:
    client_guard: whether kdeclare guards the replication factor where the brokers cannot.
    await_moves: what someone else's move is in the way of waits for it, instead of being denied.
    override_moves: the partitions of someone else's move are sent elsewhere.
    delete_by_name: delete topics also where the cluster has no topic ids: then one that was created again
        under the same name is deleted in place of the one that was seen.
    """

    client_guard: bool = False
    await_moves: bool = False
    override_moves: bool = False
    delete_by_name: bool = False

    def __post_init__(self) -> None:
        """Put the fields about Kafka into the options; what is chosen in either place holds."""
        given = find_kafka_options(self.options)
        chosen = replace(
            given,
            client_guard=self.client_guard or given.client_guard,
            await_moves=self.await_moves or given.await_moves,
            override_moves=self.override_moves or given.override_moves,
            delete_by_name=self.delete_by_name or given.delete_by_name,
        )
        object.__setattr__(self, "options", self.options.with_part(chosen))


EVERYTHING = Scope()
"""All of the project, with nothing deleted and nothing forced."""
