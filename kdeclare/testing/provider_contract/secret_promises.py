"""Tests of a provider's promises about secrets."""

import json
import logging
from collections.abc import Callable

import pytest

from kdeclare.core.jsontypes import dump_canonical_json
from kdeclare.core.live.faults import Fault
from kdeclare.core.parts import LiveState
from kdeclare.core.plans.plan import Plan
from kdeclare.core.resources.fleet_capabilities import (
    encode_body,
)
from kdeclare.engine.observation import observe, select_all
from kdeclare.engine.planning.planfile import render_plan_file
from kdeclare.engine.state.document import encode_state
from kdeclare.report.plan.plan_markdown import plan_markdown
from kdeclare.report.plan.plan_page import render_plan_page
from kdeclare.report.plan.plan_text import plan_text
from kdeclare.report.sarif import build_plan_sarif
from kdeclare.testing.provider_contract.bench import (
    Bench,
    ContractBase,
)
from kdeclare.testing.world import World


class SecretPromises(ContractBase):
    """Tests of the promise that no output contains a secret value."""

    def _read_live(self, bench: Bench) -> LiveState:
        operations = bench.plan(self._declare(self.after)).operations
        return observe(bench.world.connect(), select_all(operations))

    def test_secrets_are_nowhere(
        self, make_bench: Callable[[], Bench], caplog: pytest.LogCaptureFixture
    ) -> None:
        """No plan, state, journal, report, log, or message contains a secret value."""
        caplog.set_level(logging.DEBUG)
        texts: list[str] = []
        bench = self._apply_before(make_bench)
        texts.append(repr(self._read_live(bench)))
        texts += [dump_canonical_json(encode_body(d)) for d in bench.world.seal(self._declare(self.after))]
        texts += [repr(desired) for desired in self._declare(self.after)]
        plan = bench.plan(self._declare(self.after))
        texts += _render(plan)
        result = bench.world.run(plan)
        assert result.complete
        rollback_plan = bench.world.plan_rollback(result.run_id)
        texts += _render(rollback_plan)
        bench.world.run(rollback_plan)
        bench = self._apply_before(make_bench)
        with self._intercept_operations(bench):
            for value in self.secrets.values():
                bench.requests.faults.fail(Fault("ECHO", f"The value '{value}' is not allowed."), nth=None)
            failed = bench.apply(self._declare(self.after))
        texts += [f"{r.error} {r.message}" for r in failed.results.values()]
        texts += _collect_stored_texts(bench.world)
        texts.append(caplog.text)
        for value in self.secrets.values():
            assert not [text for text in texts if value in text]


def _render(plan: Plan) -> list[str]:
    texts = [
        render_plan_file(plan)[0],
        plan_text(plan, graph=True),
        plan_markdown(plan),
        render_plan_page(plan),
    ]
    return [*texts, json.dumps(build_plan_sarif(plan))]


def _collect_stored_texts(world: World) -> list[str]:
    state = world.store.read()
    texts = [] if state is None else [encode_state(state)]
    for run_id in world.store.runs():
        texts.append(world.store.read_plan_text(run_id))
        texts += [json.dumps(entry) for entry in world.store.entries(run_id)]
    return texts
