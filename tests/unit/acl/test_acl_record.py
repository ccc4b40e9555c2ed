"""The record of an Acl: its form in files, and its contents after a run that succeeded in part."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdeclare.providers.kafka.acl.binding import Binding, parse_binding, sort_bindings
from kdeclare.providers.kafka.acl.record import AclRecord, merge_bindings
from tests.unit.acl.acl_strategies import bindings

READ, WRITE, CREATE = (
    parse_binding(f"ALLOW User:a {name} topic:orders from *") for name in ("READ", "WRITE", "CREATE")
)

roles = st.sampled_from(["", "produce", "consume"])


@given(st.dictionaries(bindings(), roles, max_size=6))
def test_record_round_trips(roles_by_binding: Mapping[Binding, str]) -> None:
    record = AclRecord(
        sort_bindings(roles_by_binding), roles={b: role for b, role in roles_by_binding.items() if role}
    )
    assert AclRecord.from_json(record.to_json()) == record


def test_record_without_roles_has_no_field_for_them() -> None:
    assert AclRecord((READ,)).to_json() == {"bindings": [str(READ)]}
    assert AclRecord((READ, WRITE), roles={WRITE: "produce"}).to_json() == {
        "bindings": [str(READ), str(WRITE)],
        "roles": ["", "produce"],
    }


def test_record_with_a_missing_role_is_damaged() -> None:
    with pytest.raises(ValueError, match="roles: expected 2 strings"):
        AclRecord.from_json({"bindings": [str(READ), str(WRITE)], "roles": ["produce"]})


def test_partial_run_keeps_roles_of_remaining_bindings() -> None:
    before = AclRecord((READ, WRITE), roles={READ: "consume", WRITE: "streams"})
    after = AclRecord((CREATE, READ), roles={CREATE: "streams", READ: "observe"})
    merged = merge_bindings(before, after, created=[CREATE], deleted=[])
    assert merged == AclRecord(
        sort_bindings([READ, WRITE, CREATE]), roles={READ: "observe", WRITE: "streams", CREATE: "streams"}
    )
    assert merge_bindings(before, None, created=[], deleted=[WRITE]) == AclRecord(
        (READ,), roles={READ: "consume"}
    )
