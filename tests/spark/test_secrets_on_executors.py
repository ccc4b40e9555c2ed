"""Executors on other machines get secrets over protected connections only, and keep none of them."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark.programs import run_program
from tests.spark.real_fleet import LITERAL, SECRETS, RealFleet, real_fleet
from tests.spark.standalone import AUTHENTICATED, ENCRYPTED, StandaloneSpark, standalone_spark
from tests.spark.test_separate_disks import SETTINGS, run

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> RealFleet:
    with pytest.MonkeyPatch.context() as patch:
        return real_fleet(tmp_path_factory.mktemp("fleet"), patch)


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneSpark]:
    with standalone_spark(tmp_path_factory.mktemp("standalone"), SETTINGS) as cluster:
        yield cluster


def find_secrets(spark: StandaloneSpark) -> list[str]:
    """Files of executors that hold a secret, or are of the fleet."""
    secrets = [text.encode() for text in (LITERAL, *SECRETS.values())]
    own = ("fleet.zip", "fleet.yaml", "kdeclare.yaml", "state.json")
    return [
        path
        for path, data in spark.files_left().items()
        if any(secret in data for secret in secrets) or Path(path).name in own
    ]


def wait_until_cleaned(spark: StandaloneSpark) -> list[str]:
    """What is left after the worker has had time to delete the folders of an application that ended."""
    deadline = time.monotonic() + 30
    while (found := find_secrets(spark)) and time.monotonic() < deadline:
        time.sleep(0.2)
    return found


WATCHED = """
import json, sys, threading
from pathlib import Path
from kdeclare.cli.main import main

folder, secret, *line = sys.argv[1:]
seen, over = set(), threading.Event()

def watch():
    while not over.wait(0.02):
        for path in Path(folder).rglob("*"):
            try:
                if path.is_file() and secret.encode() in path.read_bytes():
                    seen.add((str(path), oct(path.stat().st_mode & 0o777)))
            except OSError:
                pass

thread = threading.Thread(target=watch)
thread.start()
try:
    code = main(line)
finally:
    over.set()
    thread.join()
print(json.dumps([code, sorted(seen)]), file=sys.stderr)
"""


@pytest.mark.parametrize("ends", ["well", "with an executor that is killed", "with an error"])
def test_executors_keep_no_secret_of_an_audit(fleet: RealFleet, spark: StandaloneSpark, ends: str) -> None:
    out = f"out of {ends}".replace(" ", "-")
    if ends == "with an executor that is killed":
        fleet.fuse.touch()
    if ends == "with an error":
        (fleet.folder / out / "report.html").mkdir(parents=True)  # the last step fails
    words = f"fleet audit {fleet.file} --snapshot {fleet.snapshots} --out {out} --master {spark.master}"
    arguments = [str(spark.local), SECRETS["SASL_PASSWORD"], *words.split(), "--shared-folders"]
    done = run_program(fleet.folder, WATCHED, {**SECRETS, **spark.environ}, *arguments)
    last = done.stderr.splitlines()[-1]
    assert last.startswith("[1, " if ends == "with an error" else "[0, "), done.stderr
    assert not fleet.fuse.exists()
    assert "0o600" in last or "0o644" in last, "the files are in Spark's temporary folder while it runs"
    assert wait_until_cleaned(spark) == []


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, ["spark.authenticate is not true, and none of spark.network.crypto.enabled, spark.ssl.rpc"]),
        (AUTHENTICATED, ["the clusters, and none of spark.network.crypto.enabled, spark.ssl.rpc.enabled"]),
        ({"spark.network.crypto.enabled": "true"}, ["and spark.authenticate is not true."]),
    ],
)
def test_secrets_are_not_sent_to_a_master_that_does_not_protect_them(
    fleet: RealFleet, tmp_path: Path, settings: dict[str, str], words: list[str]
) -> None:
    """Before anything connects to the master: there is none."""
    master = "spark://127.0.0.1:1"
    lines = (f"{key} {value}\n" for key, value in {**settings, "spark.master": master}.items())
    (tmp_path / "spark-defaults.conf").write_text("".join(lines))
    spark = StandaloneSpark(master, {"SPARK_CONF_DIR": str(tmp_path)}, tmp_path, tmp_path)
    printed, said = run(fleet, spark, "fleet plan fleet.yaml --out plans --shared-folders")
    assert printed == ["exit code 1"]
    assert "error: Spark does not protect credentials" in said
    for text in ("Tasks on spark://127.0.0.1:1 need the credentials of the clusters", *words):
        assert text in said
    assert "Set spark.authenticate=true and spark.network.crypto.enabled=true" in said
    assert "entre-nous" not in said


def test_settings_of_an_encrypted_cluster_are_those_of_the_docs() -> None:
    text = (Path(__file__).parents[2] / "docs" / "fleets.md").read_text()
    for key in ENCRYPTED:
        assert key in text
