"""Each target of the fuzzers handles its seeds, and a fixed set of changes of them."""

import pytest

from tests.fuzzing.target import check_input
from tests.fuzzing.targets import TARGET_NAMES, load_target

MUTATIONS = 40


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGET_NAMES)
def test_seeds_of_target_are_handled(name: str) -> None:
    target = load_target(name)
    seeds = target.make_seeds()
    assert seeds
    for seed in seeds:
        assert check_input(target, seed) is None


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGET_NAMES)
def test_mutations_of_seeds_are_handled(name: str) -> None:
    target = load_target(name)
    seeds = target.make_seeds()
    for number in range(MUTATIONS):
        data = target.mutate(seeds[number * 7 % len(seeds)], number)
        finding = check_input(target, data)
        assert finding is None, finding.details
