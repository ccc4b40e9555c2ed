"""Documents of kind AcceptedDrift: how they are read, which findings they select, and when they expire."""

from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.fleet.findings import FindingKind
from kdeclare.manifests.fleet.accepted_drift import AcceptedDrift, find_acceptance, select_valid
from kdeclare.manifests.fleet.accepted_drift_file import load_accepted_drift
from kdeclare.manifests.fleet.fleet_file import open_fleet

FLEET = """\
apiVersion: kdeclare/v1
kind: Fleet
metadata: {name: shop}
spec:
  acceptedDrift: [accepted]
  clusters: [{name: eu-1, bootstrapServers: "eu-1:9092", manifests: [m]}]
"""
SALE = """\
apiVersion: kdeclare/v1
kind: AcceptedDrift
metadata: {name: sale}
spec:
  reason: More retention until the sale is over.
  owner: payments
  expires: '2026-12-05'
  clusters: [eu-1, /us-.*/]
  resources:
    - {kind: Topic, names: [orders, '/payments\\..*/']}
    - {kind: BrokerConfig, names: [1]}
  fields: [configs.retention.ms]
  findings: [changed]
"""
LEGACY = """\
apiVersion: kdeclare/v1
kind: AcceptedDrift
metadata: {name: legacy}
spec: {reason: Nobody owns it., expires: '2026-12-01', resources: [{kind: Topic, names: [/.*/]}]}
"""


def load(folder: Path, *documents: str) -> tuple[AcceptedDrift, ...]:
    (folder / "accepted").mkdir(exist_ok=True)
    (folder / "fleet.yaml").write_text(FLEET)
    (folder / "accepted" / "a.yaml").write_text("---\n".join(documents))
    return load_accepted_drift(open_fleet(folder / "fleet.yaml", {}))


def test_documents_are_read_from_listed_files_and_folders(tmp_path: Path) -> None:
    sale, legacy = load(tmp_path, SALE, LEGACY)
    assert (sale.name, sale.owner, sale.expires) == ("sale", "payments", date(2026, 12, 5))
    assert [(item.kind, item.names.texts) for item in sale.resources] == [
        ("Topic", ("orders", r"/payments\..*/")),
        ("BrokerConfig", ("1",)),
    ]
    assert (legacy.owner, legacy.clusters.texts, legacy.fields.texts) == (None, (), ())
    assert legacy.findings == {kind for kind in FindingKind if kind is not FindingKind.UNREACHABLE}


@pytest.mark.parametrize(
    ("finding", "is_selected"),
    [
        (("eu-1", "Topic", "orders", "changed", "configs.retention.ms"), True),
        (("us-7", "Topic", "payments.refunds", "changed", "configs.retention.ms"), True),
        (("us-7", "BrokerConfig", "1", "changed", "configs.retention.ms"), True),
        (("eu-2", "Topic", "orders", "changed", "configs.retention.ms"), False),
        (("eu-1", "Topic", "orders2", "changed", "configs.retention.ms"), False),
        (("eu-1", "Acl", "orders", "changed", "configs.retention.ms"), False),
        (("eu-1", "Topic", "orders", "pending", "configs.retention.ms"), False),
        (("eu-1", "Topic", "orders", "changed", "configs.retention.bytes"), False),
        (("eu-1", "Topic", "orders", "changed", None), False),
    ],
)
def test_finding_is_selected_if_it_meets_all_conditions(
    tmp_path: Path, finding: tuple[str, str, str, str, str | None], is_selected: bool
) -> None:
    accepted = load(tmp_path, SALE)
    assert find_acceptance(accepted, *finding) == ("sale" if is_selected else None)


def test_first_document_that_selects_a_finding_accepts_it(tmp_path: Path) -> None:
    accepted = load(tmp_path, SALE, LEGACY)
    topic = ("eu-1", "Topic", "orders")
    assert find_acceptance(accepted, *topic, "changed", "configs.retention.ms") == "sale"
    assert find_acceptance(accepted, *topic, "missing", None) == "legacy"
    assert find_acceptance(accepted, *topic, "unreachable", None) is None


@pytest.mark.parametrize(
    ("taken_at", "names"),
    [
        ("2026-12-01T23:59:59+00:00", ["sale", "legacy"]),
        ("2026-12-02T00:00:00+00:00", ["sale"]),
        ("2026-12-02T01:00:00+02:00", ["sale", "legacy"]),
        ("2026-12-06T00:00:00+00:00", []),
    ],
)
def test_drift_is_accepted_until_the_end_of_the_last_day(
    tmp_path: Path, taken_at: str, names: list[str]
) -> None:
    valid = select_valid(load(tmp_path, SALE, LEGACY), datetime.fromisoformat(taken_at))
    assert [item.name for item in valid] == names
    assert not select_valid(valid, datetime(2030, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("before", "after", "place", "detail"),
    [
        ("'2026-12-05'", "soon", "7:12", "'expires' must be a date, but it is 'soon'."),
        ("'2026-12-05'", "'2026-02-30'", "7:12", "it is '2026-02-30'"),
        ("'2026-12-05'", "2026-12-05", "7:12", "'2026-12-05' is a date in YAML 1.1"),
        ("  expires: '2026-12-05'\n", "", "5:3", "'expires'"),
        (
            "reason: More retention until the sale is over.",
            "reason: ''",
            "5:11",
            "'spec.reason' needs at least one character.",
        ),
        ("kind: Topic,", "kind: Topci,", "10:14", "'Topci' is not a kind of resource."),
        ("[eu-1, /us-.*/]", "[eu-1, '/us-(/']", "8:20", "/us-(/ is not a valid regular expression"),
        ("orders, ", "'/[/', ", "10:29", "/[/ is not a valid regular expression"),
        ("[configs.retention.ms]", "['/*/']", "12:12", "/*/ is not a valid regular expression"),
        ("findings: [changed]", "findings: [unreachable]", "13:14", "'unreachable'"),
        ("clusters: [eu-1, /us-.*/]", "clusters: []", "8:13", "'spec.clusters' needs at least one element."),
        ("owner: payments", "ower: payments", "6:3", "'ower'"),
    ],
)
def test_mistakes_are_reported_with_their_positions(
    tmp_path: Path, before: str, after: str, place: str, detail: str
) -> None:
    assert before in SALE
    with pytest.raises(KdeclareError) as caught:
        load(tmp_path, SALE.replace(before, after, 1))
    (problem,) = caught.value.diagnostics
    assert f"{problem.place}" == f"{tmp_path}/accepted/a.yaml:{place}"
    assert detail in problem.detail


def test_names_are_unique_and_files_exist(tmp_path: Path) -> None:
    with pytest.raises(KdeclareError, match="is also named 'sale'"):
        load(tmp_path, SALE, SALE)
    (tmp_path / "fleet.yaml").write_text(FLEET.replace("[accepted]", "[accepted, gone.yaml]"))
    (tmp_path / "accepted" / "a.yaml").write_text(SALE)
    with pytest.raises(KdeclareError) as caught:
        load_accepted_drift(open_fleet(tmp_path / "fleet.yaml", {}))
    (problem,) = caught.value.diagnostics
    assert (problem.code, str(problem.place)) == ("no-such-path", f"{tmp_path}/fleet.yaml:5:29")
