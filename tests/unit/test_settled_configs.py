"""Configs that are as declared and as applied are told at a glance, and nothing else comes of it."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdeclare.core.secrets.secret_hashes import SecretHasher
from kdeclare.core.secrets.secret_refs import Secret, SecretRef
from kdeclare.providers.kafka.config import config_diff
from kdeclare.providers.kafka.config.catalog import load_catalog
from kdeclare.providers.kafka.config.config_diff import LiveConfigs, diff_configs
from kdeclare.providers.kafka.config.config_record import Applied, AppliedListPatch, AppliedValue
from kdeclare.providers.kafka.config.config_value import ConfigValue, ListPatch, Unset, Value
from kdeclare.providers.kafka.ids import ConfigScope
from kdeclare.providers.kafka.live import ConfigEntry, ConfigSource, ConfigType

keys = st.sampled_from(["retention.ms", "cleanup.policy", "preallocate", "plugin.key"])
texts = st.sampled_from(
    ["1000", "1_000", "true", "TRUE", "compact", "compact,delete", "a", "(sensitive)", ""]
)
elements = st.sampled_from([(), ("compact",), ("compact", "delete")])
hashes = st.just(SecretHasher("here").make_hash("Topic/t", "retention.ms", "1000"))
secrets = st.builds(Secret, texts, st.none(), digest=hashes)
wishes = st.one_of(
    st.builds(Value, texts | elements, st.none() | secrets),
    st.builds(ListPatch, elements, elements),
    st.just(Unset()),
    secrets,
)
records = st.one_of(
    st.builds(AppliedValue, texts | elements | st.none()),
    st.builds(AppliedListPatch, elements, elements, elements),
    st.builds(SecretRef, hashes, st.none()),
)
entries = st.builds(
    ConfigEntry,
    texts | st.none(),
    st.sampled_from([ConfigSource.TOPIC, ConfigSource.DEFAULT]),
    st.sampled_from(ConfigType),
    st.booleans(),
)


@given(
    st.dictionaries(keys, entries),
    st.dictionaries(keys, wishes),
    st.dictionaries(keys, records),
    st.booleans(),
)
def test_settled_configs_give_same_diff(
    live: Mapping[str, ConfigEntry],
    declared: Mapping[str, ConfigValue],
    owned: Mapping[str, Applied],
    reset: bool,
) -> None:
    side = LiveConfigs("Topic/t", live, ConfigSource.TOPIC, load_catalog(ConfigScope.TOPIC))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(config_diff, "token_hex", lambda: "one salt for both")
        found = diff_configs(side, declared, owned, reset_unmanaged=reset)

        patch.setattr(config_diff, "_is_settled", lambda *_: False)
        assert diff_configs(side, declared, owned, reset_unmanaged=reset) == found
