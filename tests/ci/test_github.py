"""The steps of the GitHub Action, with a stub of GitHub and an in-memory cluster."""

import json
import shutil
import subprocess
import sys
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from kdeclare.core.resources.changes import FieldOp
from kdeclare.providers.kafka.request_values import ConfigAlteration, ConfigOp, NewPartitions
from kdeclare.report.plan.plan_markdown import MAX_COMMENT_LENGTH
from tests.beds import topic_resource
from tests.ci.gh_stub import BOT
from tests.ci.memory_kdeclare import load_cluster, save_cluster
from tests.ci.pull_request import (
    HEAD,
    apply_merge,
    build_plan_run,
    open_pull_request,
    plan_pull_request,
    read_outputs,
)
from tests.ci.runner import STEPS, Runner
from tests.http_servers import serve

pytestmark = pytest.mark.slow


UNNAMED = {"name": "naming", "class": "kdeclare.policy.rules:NamePattern", "config": {"pattern": "shop-.*"}}


@pytest.fixture
def github(runner: Runner) -> Runner:
    """Provide a GitHub runner with a pull request."""
    return open_pull_request(runner)


def allow_references(github: Runner, **references: list[str]) -> None:
    """Configure the project to allow references."""
    lab = {"lab": {"bootstrapServers": "lab:9092"}}
    github.write("kdeclare.yaml", "Project", "shop", {"environments": lab, "references": references})


def list_topics(github: Runner) -> set[str]:
    """Return the topics of the cluster."""
    return set(load_cluster(Path(github.environ["STUB_CLUSTER"])).topics())


def alter_config(github: Runner, topic: str, key: str, value: str) -> None:
    """Change a topic outside kdeclare."""
    file = Path(github.environ["STUB_CLUSTER"])
    cluster = load_cluster(file)
    altered = cluster.alter_configs(
        [ConfigAlteration(topic_resource(topic), (ConfigOp(key, FieldOp.SET, value),))]
    )
    assert not any(altered.values())
    save_cluster(cluster, file)


def test_pull_request_comment_is_updated_in_place(github: Runner) -> None:
    person = {"id": 1, "user": {"login": "mallory"}, "body": "<!-- kdeclare plan lab -->\nmine"}
    github.update_service(
        comments=[person, person | {"id": 2, "body": "Nice!"}, person | {"id": 3, "body": "Ship it"}]
    )
    github.topic("orders")
    plan_pull_request(github)
    *others, first = github.service_data["comments"]
    assert first["user"]["login"] == BOT
    assert first["body"].startswith(
        "<!-- kdeclare plan lab -->\n## Plan for shop/lab on lab:9092: 1 to create."
    )
    report = (github.out / "report.md").read_text()
    assert report in first["body"]
    assert len(first["body"]) - len(report) < 65_536 - MAX_COMMENT_LENGTH, (
        "there is always room for what is added"
    )
    assert "this run</a>; if you merge, exactly this plan is applied." in first["body"]
    github.topic("refunds")
    plan_pull_request(github, run=2)
    assert [c["id"] for c in github.service_data["comments"]] == [1, 2, 3, first["id"]]
    assert github.service_data["comments"][:3] == others, "nobody else's comment is touched"
    assert "2 to create" in github.service_data["comments"][3]["body"]
    assert github.exit_code == 0


def test_pull_request_comment_is_found_with_other_token_owner(github: Runner) -> None:
    marked = {"body": "<!-- kdeclare plan lab -->\nold"}
    theirs = [{"id": 1, "user": None} | marked, {"id": 2, "user": {"login": BOT}} | marked]
    mine = {"id": 3, "user": {"login": "kafka-plans[bot]"}} | marked
    github.update_service(comments=[*theirs, mine])
    github.topic("orders")
    github.environ["KDECLARE_COMMENT_AUTHOR"] = "kafka-plans[bot]"
    plan_pull_request(github)
    *others, updated = github.service_data["comments"]
    assert others == theirs
    assert "1 to create" in updated["body"]


def test_comment_on_denied_plan_promises_no_apply(github: Runner) -> None:
    github.topic("orders")
    project = {"environments": {"lab": {"bootstrapServers": "lab:9092"}}, "policies": [UNNAMED]}
    github.write("kdeclare.yaml", "Project", "shop", project)
    plan_pull_request(github)
    [comment] = github.service_data["comments"]
    assert "this run</a>; nothing is applied until this check passes." in comment["body"]
    assert github.exit_code == 3


def test_each_environment_has_its_own_comment(github: Runner) -> None:
    github.topic("orders")
    clusters = {name: {"bootstrapServers": f"{name}:9092"} for name in ("lab", "live")}
    github.write("kdeclare.yaml", "Project", "shop", {"environments": clusters})
    for env in ("lab", "live", "lab"):
        github.run_ok("github/run.sh", KDECLARE_COMMAND="plan", KDECLARE_PULL="12", KDECLARE_ENV=env)
    heads = [comment["body"].partition(":9092")[0] for comment in github.service_data["comments"]]
    assert heads == [f"<!-- kdeclare plan {e} -->\n## Plan for shop/{e} on {e}" for e in ("lab", "live")]


def test_plan_with_errors_is_commented_and_fails_the_job(github: Runner) -> None:
    github.topic("orders", partitons=3)
    github.run_ok("github/run.sh", KDECLARE_COMMAND="plan", KDECLARE_PULL="12")
    [comment] = github.service_data["comments"]
    assert "## kdeclare failed: 1 error." in comment["body"]
    assert "this run</a>; nothing is applied until this check passes." in comment["body"]
    assert github.exit_code == 1
    assert "plan-file" not in read_outputs(github), "there is nothing to apply"
    [result] = json.loads((github.checkout / read_outputs(github)["sarif"]).read_text())["runs"][0]["results"]
    assert result["ruleId"] == "unknown-field"


def test_findings_without_file_point_to_the_project_file(github: Runner) -> None:
    (github.checkout / ".git").mkdir()
    (github.checkout / "kafka").mkdir()
    for name in ("kdeclare.yaml", "manifests"):
        (github.checkout / name).rename(github.checkout / "kafka" / name)
    github.environ["KDECLARE_PROJECT"] = "kafka/kdeclare.yaml"
    github.write("kafka/manifests/orders.yaml", "Topic", "orders", {"partitions": 1})
    github.write("kafka/manifests/kept.yaml", "Topic", "kept", {"partitions": 1})
    plan_pull_request(github)
    assert apply_merge(github) == 0
    (github.checkout / "kafka" / "manifests" / "orders.yaml").unlink()
    plan_pull_request(github, run=2)
    [result] = json.loads((github.checkout / read_outputs(github)["sarif"]).read_text())["runs"][0]["results"]
    [place] = result["locations"]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == "kafka/kdeclare.yaml"


def test_plan_with_unknown_environment_is_commented(github: Runner) -> None:
    github.run_ok("github/run.sh", KDECLARE_COMMAND="plan", KDECLARE_PULL="12", KDECLARE_ENV="labb")
    [comment] = github.service_data["comments"]
    assert "The project has no environment" in comment["body"]
    assert github.exit_code == 1
    ran = github.run("github/run.sh", KDECLARE_COMMAND="destroy")
    assert (ran.returncode, "is not valid. Use validate, plan, apply or audit." in ran.stderr) == (64, True)


def test_apply_uses_reviewed_plan_only_once(github: Runner) -> None:
    github.topic("orders")
    plan_pull_request(github, run=1)
    github.topic("refunds")
    plan_pull_request(github, run=2)
    github.topic("mails")
    plan_pull_request(github, run=3, head_sha="c" * 40)
    assert apply_merge(github) == 0
    assert list_topics(github) == {"orders", "refunds"}, "the newest for the last commit, and nothing else"
    assert "2 of 2 operations done" in Path(github.environ["GITHUB_STEP_SUMMARY"]).read_text()
    assert apply_merge(github) == 4


def test_state_is_kept_between_jobs(github: Runner) -> None:
    github.topic("orders")
    github.topic("kept")
    plan_pull_request(github)
    assert apply_merge(github) == 0
    (github.checkout / "manifests" / "orders.yaml").unlink()
    github.switch_machine()
    plan_pull_request(github, run=2)
    assert "orphan" in github.service_data["comments"][0]["body"], "it is known to be kdeclare's own"


def test_apply_refuses_stale_plan(github: Runner) -> None:
    github.topic("orders", configs={"retention.ms": 1000})
    plan_pull_request(github)
    assert apply_merge(github) == 0
    github.topic("orders", configs={"retention.ms": 2000})
    plan_pull_request(github, run=2)
    alter_config(github, "orders", "retention.ms", "3000")
    assert apply_merge(github) == 4
    told = Path(github.environ["GITHUB_STEP_SUMMARY"]).read_text()
    assert "kdeclare apply: exit code 4" in told
    assert "The merged manifests no longer produce this plan" in told
    refused = told.partition("kdeclare apply: exit code 4")[2]
    assert '"3000"' in refused, "what it is now, which nobody has reviewed"


def test_apply_that_cannot_start_reports_the_reason(github: Runner) -> None:
    github.topic("orders")
    plan_pull_request(github)
    Path(github.environ["STUB_CLUSTER"]).unlink()
    github.run_ok("github/run.sh", KDECLARE_COMMAND="apply")
    report = (github.out / "report.md").read_text()
    assert "exit code 1" in report
    assert "Nothing is applied.\nerror: The cluster cannot be reached\n" in report
    assert github.exit_code == 1


def test_apply_report_contains_errors_but_no_other_log(github: Runner) -> None:
    github.topic("orders")
    plan_pull_request(github)
    said = "warning: password='hunter2'\nerror: Held <by> another\n  hint: Wait.\n"
    command = github.folder / "bin" / "kdeclare"
    itself = command.rename(command.with_name("kdeclare-itself"))
    fails = f"printf '%s' \"{said}\" >&2; exit 6"
    command.write_text(f'#!/bin/sh\n[ "$1" = apply ] || exec "{itself}" "$@"\n{fails}\n')
    command.chmod(0o755)
    ran = github.run_ok("github/run.sh", KDECLARE_COMMAND="apply")
    assert said in ran.stderr
    report = (github.out / "report.md").read_text()
    assert report.endswith("<pre>\nerror: Held &lt;by&gt; another\n  hint: Wait.\n</pre>\n")
    assert not any("hunter2" in f.read_text() for f in github.out.rglob("*") if f.is_file())
    assert github.exit_code == 6


def test_apply_refuses_plan_that_differs_from_merged_manifests(github: Runner) -> None:
    """Any workflow on a branch can store another plan under the name of the reviewed one."""
    github.topic("orders")
    plan_pull_request(github)
    github.topic("evil")
    plan_pull_request(github, run=2)
    (github.checkout / "manifests" / "evil.yaml").unlink()
    assert apply_merge(github) == 4
    assert list_topics(github) == set()
    told = Path(github.environ["GITHUB_STEP_SUMMARY"]).read_text()
    assert "The merged manifests no longer produce this plan" in told
    refused = told.partition("kdeclare apply: exit code 4")[2]
    assert "ownership Topic/evil: is no longer planned" in refused
    assert refused.count("is no longer planned") == 2, "its operation is the other; the rest is as it was"


@pytest.mark.thorough
def test_plan_arguments_of_the_workflow_are_used(github: Runner) -> None:
    github.topic("orders")
    project = {"environments": {"lab": {"bootstrapServers": "lab:9092"}}, "policies": [UNNAMED]}
    github.write("kdeclare.yaml", "Project", "shop", project)
    why = '--override-policy=naming\n\n--reason=It\'s * $(touch pwned) "old"\n'
    github.environ["KDECLARE_PLAN_ARGUMENTS"] = why
    plan_pull_request(github)
    [verdict] = json.loads((github.out / "kdeclare.plan.json").read_text())["verdicts"]
    assert verdict["override"] == 'It\'s * $(touch pwned) "old"'
    assert apply_merge(github) == 0
    assert list_topics(github) == {"orders"}
    (github.checkout / "manifests" / "orders.yaml").unlink()
    github.environ["KDECLARE_PLAN_ARGUMENTS"] = "--allow-deletes\n--allow-empty"
    plan_pull_request(github, run=2)
    assert apply_merge(github, KDECLARE_PLAN_ARGUMENTS="") == 4, "both workflows need them"
    assert apply_merge(github) == 0
    assert list_topics(github) == set()
    assert list(github.folder.rglob("pwned")) == []


def test_apply_leaves_out_changes_after_the_review(github: Runner) -> None:
    github.topic("orders")
    plan_pull_request(github)
    github.topic("refunds")
    assert apply_merge(github) == 0
    assert list_topics(github) == {"orders"}


def test_apply_refuses_plan_only_if_its_secret_changed(github: Runner) -> None:
    configs = {"listener.name.internal.ssl.keystore.password": "${env.KEYSTORE_PASSWORD}"}
    github.write("manifests/broker.yaml", "BrokerConfig", "1", {"configs": configs})
    allow_references(github, env=["KEYSTORE_PASSWORD"])
    github.environ["KEYSTORE_PASSWORD"] = "hunter2"
    plan_pull_request(github)
    assert apply_merge(github, KEYSTORE_PASSWORD="hunter3") == 4
    assert apply_merge(github) == 0


NO_PLAN = {
    "no successful run": {"conclusion": "failure"},
    "a run for another commit": {"head_sha": "c" * 40},
    "a run of another workflow": {"path": "evil.yml"},
    "a run that is none of a pull request": {"event": "push"},
    "a run of another branch": {"head_branch": "copy-of-topics"},
    "a fork's run": {"head_repository": {"full_name": "mallory/kafka"}},
    "a repository that is gone": {"head_repository": None},
    "an artifact that is gone": {"id": 99},
}


@pytest.mark.parametrize("facts", NO_PLAN.values(), ids=NO_PLAN.keys())
def test_apply_without_reviewed_plan_is_refused(github: Runner, facts: dict[str, Any]) -> None:
    kept = github.service / "artifacts" / "1" / "kdeclare-plan-lab-12"
    kept.mkdir(parents=True)
    (kept / "kdeclare.plan.json").write_text("{}")
    build_plan_run(github, 1, **facts)
    ran = github.run("github/run.sh", KDECLARE_COMMAND="apply")
    assert ran.returncode == 1
    assert ", the head of #12, has the artifact kdeclare-plan-lab-12." in ran.stderr
    assert "No successful run of kdeclare-plan.yml for " in ran.stderr
    assert "Nothing is applied." in ran.stderr
    assert not (github.out / "exit-code").exists(), "kdeclare apply was not run"
    assert github.exit_code == 1


@pytest.mark.parametrize("facts", [{"merged_at": None}, {"base": {"ref": "old"}}, {"merge_commit_sha": HEAD}])
def test_apply_refuses_commit_without_pull_request(github: Runner, facts: dict[str, Any]) -> None:
    github.update_service(pulls=[github.service_data["pulls"][0] | facts])
    ran = github.run("github/run.sh", KDECLARE_COMMAND="apply")
    assert (ran.returncode, "was not merged from a pull request" in ran.stderr) == (1, True)
    assert list_topics(github) == set()


@pytest.mark.parametrize("step", ["github/comment.sh", "github/find-plan.sh", "github/issue.sh"])
def test_step_fails_when_github_fails(github: Runner, step: str) -> None:
    github.out.mkdir()
    (github.out / "report.md").write_text("## Plan\n")
    (github.out / "found").write_text("drift\n")
    (github.out / "exit-code").write_text("0\n")
    ran = github.run(step, KDECLARE_PULL="12", GITHUB_REPOSITORY="shop/other")
    assert ran.returncode != 0
    assert "HTTP 404" in ran.stderr
    assert "Traceback" not in ran.stderr


def run_audit(github: Runner) -> list[tuple[str, str]]:
    """Run the nightly audit; return the issues with state and second line."""
    github.switch_machine()
    github.run_ok("github/run.sh", KDECLARE_COMMAND="audit")
    return [(issue["state"], issue["body"].splitlines()[1]) for issue in github.service_data["issues"]]


def test_drift_opens_one_issue_and_closes_it(github: Runner) -> None:
    github.topic("orders", configs={"retention.ms": 1000})
    plan_pull_request(github)
    assert apply_merge(github) == 0
    alter_config(github, "orders", "retention.ms", "3000")
    changed = "## Plan for shop/lab on lab:9092: 1 to change."
    assert [(state, line[: len(changed)]) for state, line in run_audit(github)] == [("open", changed)]
    assert github.exit_code == 0
    assert github.service_data["issues"][0]["title"] == "Kafka differs from its manifests: lab"
    github.topic("refunds")
    [(state, line)] = run_audit(github)
    assert (state, "1 to create" in line) == ("open", True), "it is kept up to date"
    alter_config(github, "orders", "retention.ms", "1000")
    (github.checkout / "manifests" / "refunds.yaml").unlink()
    [(state, kept)] = run_audit(github)
    assert (state, kept) == ("closed", line)


@pytest.mark.thorough
def test_drift_that_no_plan_can_fix_opens_an_issue(github: Runner) -> None:
    github.topic("orders", partitions=3)
    plan_pull_request(github)
    assert apply_merge(github) == 0
    file = Path(github.environ["STUB_CLUSTER"])
    cluster = load_cluster(file)
    assert not any(cluster.create_partitions([NewPartitions("orders", 5)]).values())
    save_cluster(cluster, file)
    [(state, line)] = run_audit(github)
    assert (state, "1 blocked" in line) == ("open", True), line
    assert "invalid-partitions" in github.service_data["issues"][0]["body"]
    assert github.exit_code == 0, "it has looked"


def test_audit_with_invalid_manifests_opens_no_issue(github: Runner) -> None:
    github.topic("orders", partitons=3)
    assert run_audit(github) == []
    assert github.exit_code == 1


@pytest.mark.thorough
def test_each_audit_has_its_own_issue(github: Runner) -> None:
    """An audit without findings does not close another one's issue."""
    settings = (
        {"KDECLARE_PROJECT": "kafka/kdeclare.yaml", "KDECLARE_ENV": "eu"},
        {"KDECLARE_PROJECT": "kdeclare.yaml", "KDECLARE_ENV": "kafka-eu"},
        {"KDECLARE_PROJECT": "kafka-kdeclare.yaml", "KDECLARE_ENV": "eu"},
        {"KDECLARE_FLEET": "fleet.yaml"},
        {"KDECLARE_FLEET": "kafka/fleet.yaml"},
        {"KDECLARE_FLEET": "a-->b"},
    )
    github.out.mkdir()
    (github.out / "report.md").write_text("## Drift\n")
    for found, count in (("drift", 6), ("drift", 6), ("in-order", 6)):
        (github.out / "found").write_text(f"{found}\n")
        for setting in settings:
            github.run_ok("github/issue.sh", **setting)
        assert len(github.service_data["issues"]) == count
    assert {issue["state"] for issue in github.service_data["issues"]} == {"closed"}
    assert all(issue["body"].splitlines()[0].count("-->") == 1 for issue in github.service_data["issues"])


def test_fleet_audit_reports_policy_findings(github: Runner) -> None:
    github.environ["KDECLARE_FLEET"] = "fleet.yaml"
    github.run_ok("github/run.sh", KDECLARE_COMMAND="audit")
    assert github.exit_code == 1, "there is no such file, and yet the command line is right"
    told = github.folder / "fleet-audit"
    (github.folder / "report.md").write_text("## Audit: 1 policy\n")
    (github.folder / "bin" / "kdeclare").write_text(
        f'#!/bin/sh\necho "$@" > {told}\nmkdir -p "$5" && cp {github.folder}/report.md "$5"\nexit 2\n'
    )
    assert run_audit(github) == [("open", "## Audit: 1 policy")]
    assert told.read_text().split("--detailed-exitcode ")[1] == "--fail-on policy\n"
    assert github.service_data["issues"][0]["title"] == "Kafka differs from its manifests: fleet.yaml"


def make_fleet(github: Runner, notifications: str = "") -> None:
    """Write a fleet file with one cluster, which the project of the checkout defines."""
    github.environ["KDECLARE_FLEET"] = "fleet.yaml"
    entry = "    - {name: lab, project: kdeclare.yaml, env: lab}\n"
    head = "apiVersion: kdeclare/v1\nkind: Fleet\nmetadata: {name: shop}\nspec:\n"
    (github.checkout / "fleet.yaml").write_text(f"{head}{notifications}  clusters:\n{entry}")


def audit_fleet(github: Runner, **settings: str) -> dict[str, Any]:
    """Run the nightly audit on another machine, to which the cache brings the audits. Return the summary."""
    kept = github.folder / "kept"
    github.switch_machine()
    if kept.exists():
        shutil.copytree(kept, github.out / "audit")
    github.run_ok("github/run.sh", KDECLARE_COMMAND="audit", **settings)
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(github.out / "audit", kept)
    summary: dict[str, Any] = json.loads((kept / "summary.json").read_text())
    return summary


def test_fleet_audit_compares_with_last_night(github: Runner) -> None:
    github.topic("orders")
    make_fleet(github)
    first = audit_fleet(github)
    assert (first["found"], first["since"]) == ({"pending": 1}, None)
    github.topic("refunds")
    second = audit_fleet(github)
    assert second["since"]["audit_id"] == first["audit_id"]
    assert (second["since"]["new"], second["since"]["known"]) == (1, 1)
    assert second["groups"][0]["oldest"] == first["groups"][0]["oldest"]
    assert "1 new, 1 known, 0 fixed" in github.service_data["issues"][0]["body"]


@pytest.mark.thorough
def test_failed_fleet_audit_does_not_report_last_night(github: Runner) -> None:
    github.topic("orders")
    make_fleet(github)
    audit_fleet(github)
    [issue] = github.service_data["issues"]
    (github.checkout / "fleet.yaml").write_text("kind: Fleet\n")
    audit_fleet(github)
    assert github.exit_code == 1
    assert not (github.out / "report.md").exists()
    assert github.service_data["issues"] == [issue]


@pytest.mark.thorough
def test_fleet_audit_sends_messages_once(github: Runner) -> None:
    received: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def respond(self) -> None:
            received.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.send_response(200 if len(received) != 2 else 404)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    github.topic("orders")
    make_fleet(github, "  notifications: [{name: platform, format: slack, url: '${env.HOOK}'}]\n")
    with serve(Handler, ("POST",)) as url:
        settings = {"HOOK": f"{url}/secret-path-of-the-hook", "KDECLARE_NOTIFY": "true"}
        audit_fleet(github, **settings)
        assert (len(received), github.exit_code) == (1, 0)
        audit_fleet(github, **settings)
        assert (len(received), github.exit_code) == (1, 0), "nothing is new"
        github.topic("refunds")
        audit_fleet(github, **settings)
        assert (len(received), github.exit_code) == (2, 1), "the message was refused"
        assert "refunds" in github.service_data["issues"][0]["body"]
        audit_fleet(github, **settings)
        assert (len(received), github.exit_code) == (3, 0)
    assert "refunds" in received[2]


def test_only_latest_audits_are_kept(tmp_path: Path) -> None:
    ids = [f"202611{day:02}T030000Z-0000" for day in range(1, 31)] * 3
    ids = [f"{number:02}{id_}" for number, id_ in enumerate(ids)]
    for id_ in ids:
        for table in ("findings", "unseen", "summary"):
            (tmp_path / table / f"audit_id={id_}").mkdir(parents=True)
            (tmp_path / table / f"audit_id={id_}" / "part.parquet").touch()
        (tmp_path / "audits").mkdir(exist_ok=True)
        (tmp_path / "audits" / f"{id_}.json").touch()
    subprocess.run([sys.executable, STEPS / "audits.py", tmp_path], check=True)
    assert sorted(file.stem for file in (tmp_path / "audits").iterdir()) == ids[-60:]
    for table in ("findings", "unseen", "summary"):
        assert sorted(folder.name for folder in (tmp_path / table).iterdir()) == [
            f"audit_id={id_}" for id_ in ids[-60:]
        ]


def test_records_of_messages_about_removed_audits_are_removed(tmp_path: Path) -> None:
    ids = [f"2026{month:02}{day:02}T030000Z-0000" for month in (10, 11, 12) for day in range(1, 31)]
    records = {"platform": ids, "failing": ids[:70], "paused": ids[:20], "new": ids[89:]}
    for folder, names in (
        ("audits", ids),
        *((f"notifications/{target}", records[target]) for target in records),
    ):
        (tmp_path / folder).mkdir(parents=True)
        for name in names:
            (tmp_path / folder / f"{name}.json").touch()
    subprocess.run([sys.executable, STEPS / "audits.py", tmp_path], check=True)
    kept = {
        target: sorted(file.stem for file in (tmp_path / "notifications" / target).iterdir())
        for target in records
    }
    assert kept == {
        "platform": ids[-60:],
        "failing": ids[30:70],
        "paused": [ids[19]],  # the next message compares with the audit of this record
        "new": [ids[89]],
    }


TEAM_AUDIT = """\
#!/bin/sh
echo "$@" > "$KDECLARE_TOLD"
mkdir -p "$5"
cp -r "$KDECLARE_TEAMS" "$5/teams"
echo "## All" > "$5/report.md"
exit 2
"""


def test_fleet_audit_keeps_one_issue_for_each_team(github: Runner) -> None:
    teams, told = github.folder / "teams", github.folder / "told"
    teams.mkdir()
    names = {"checkout": "checkout", "a-->b\tc": "a--%3Eb%09c", "(no team)": "(no team)"}
    for file in names.values():
        (teams / f"{file}.md").write_text(f"## Drift of {file}\n")
    github.environ |= {"KDECLARE_FLEET": "fleet.yaml", "KDECLARE_ISSUES_BY": "team"}
    github.environ |= {"KDECLARE_TEAMS": str(teams), "KDECLARE_TOLD": str(told)}
    (github.folder / "bin" / "kdeclare").write_text(TEAM_AUDIT)
    assert [state for state, _ in run_audit(github)] == ["open"] * 3
    assert told.read_text().endswith("--fail-on policy --by team\n")
    issues = github.service_data["issues"]
    assert {issue["title"] for issue in issues} == {
        f"Kafka differs from its manifests: fleet.yaml (team {name})"
        for name in ("checkout", "a-->b c", "(no team)")
    }
    assert all(issue["body"].splitlines()[0].count("-->") == 1 for issue in issues)
    (teams / "checkout.md").write_text("## Other drift\n")
    (teams / "(no team).md").unlink()
    assert sorted(run_audit(github)) == [
        ("closed", "## Drift of (no team)"),
        ("open", "## Drift of a--%3Eb%09c"),
        ("open", "## Other drift"),
    ]
    for remaining in teams.iterdir():
        remaining.unlink()
    (github.folder / "bin" / "kdeclare").write_text(TEAM_AUDIT.replace("exit 2", "exit 0"))
    assert {state for state, _ in run_audit(github)} == {"closed"}


def test_issues_of_teams_replace_the_issue_of_the_fleet(github: Runner) -> None:
    github.out.mkdir()
    (github.out / "report.md").write_text("## Drift\n")
    (github.out / "found").write_text("drift\n")
    (github.out / "audit" / "teams").mkdir(parents=True)
    (github.out / "audit" / "teams" / "checkout.md").write_text("## Mine\n")
    for by in ("", "team", ""):
        github.run_ok("github/issue.sh", KDECLARE_FLEET="fleet.yaml", KDECLARE_ISSUES_BY=by)
    states = [(issue["state"], issue["body"].splitlines()[1]) for issue in github.service_data["issues"]]
    assert states == [("closed", "## Drift"), ("closed", "## Mine"), ("open", "## Drift")]


def test_failed_audit_changes_no_issue(github: Runner) -> None:
    github.topic("orders")
    [(state, before)] = run_audit(github)
    Path(github.environ["STUB_CLUSTER"]).unlink()
    assert run_audit(github) == [(state, before)]
    assert github.exit_code == 1


def test_validate_of_a_fork_uses_no_service(github: Runner) -> None:
    github.topic("orders", partitons=3)
    Path(github.environ["STUB_CLUSTER"]).unlink()
    ran = github.run_ok("github/run.sh", KDECLARE_COMMAND="validate")
    assert "manifests/orders.yaml:" in ran.stdout
    assert github.exit_code == 1
    assert (github.checkout / read_outputs(github)["sarif"]).exists()
    assert github.requests == ""


def test_client_properties_reach_only_the_cluster(github: Runner) -> None:
    github.topic("orders")
    secret = "security.protocol=SASL_SSL\nsasl.jaas.config=x password='hunter2';"
    github.environ["KDECLARE_CLIENT_PROPERTIES"] = secret
    plan_pull_request(github)
    told = Path(github.environ["STUB_CLUSTER"]).with_suffix(".connected").read_text()
    connected = [json.loads(line) for line in told.splitlines()]
    assert {c["config"]["security.protocol"] for c in connected} == {"SASL_SSL"}
    assert all("hunter2" not in json.dumps(c["arguments"]) for c in connected)
    assert list((github.folder / "tmp").iterdir()) == [], "no file is left behind"
    texts = [f.read_text() for f in github.out.rglob("*") if f.is_file()]
    texts += [
        github.requests,
        json.dumps(github.service_data),
        *(f.read_text() for f in github.folder.glob("*put")),
    ]
    assert not any("hunter2" in text for text in texts)


def test_settings_are_never_run_as_commands(github: Runner) -> None:
    github.topic("orders")
    evil = "$(touch pwned) `touch pwned`; touch pwned \"' -->"
    names = ("KDECLARE_ENV", "KDECLARE_PROJECT", "KDECLARE_REVISION", "KDECLARE_RUN_URL")
    github.run("github/run.sh", KDECLARE_COMMAND="plan", KDECLARE_PULL="12", **dict.fromkeys(names, evil))
    github.run("github/run.sh", KDECLARE_COMMAND=evil)
    assert list(github.folder.rglob("pwned")) == []
    markers = [comment["body"].splitlines()[0] for comment in github.service_data["comments"]]
    assert len(markers) == 1
    assert all(marker.count("-->") == 1 for marker in markers)
