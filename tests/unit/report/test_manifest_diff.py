"""The diff of written manifests does not show literal secrets."""

from kdeclare.manifests.editing.documents import FileEdit
from kdeclare.report.manifest.manifest_diff import render_manifest_diff

MANIFEST = b"""\
spec:
  configs:
    listener.name.a.ssl.keystore.password: hunter2
    ssl.key.password: |
      hunter3
    log.cleaner.threads: 1
    more: {listener.name.b.ssl.key.password: hunter4, a: 1}
    ssl.truststore.password: ${env.STORE}
"""


def test_manifest_diff_hides_secrets_in_context_and_deletions() -> None:
    after = MANIFEST.replace(b"threads: 1", b"threads: 2")
    for edit in (FileEdit("m.yaml", MANIFEST, after), FileEdit("m.yaml", MANIFEST, None)):
        shown = render_manifest_diff([edit])
        assert "hunter" not in shown
        assert "ssl.keystore.password: (sensitive)" in shown
        assert "${env.STORE}" in shown
