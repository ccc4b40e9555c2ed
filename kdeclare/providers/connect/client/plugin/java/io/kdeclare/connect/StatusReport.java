package io.kdeclare.connect;

import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.security.cert.CertificateEncodingException;
import java.security.cert.X509Certificate;
import java.time.Instant;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** The response of {@code GET …/status}: one worker's own view, with the certificates that it serves. */
final class StatusReport {
    private StatusReport() { }

    static Map<String, Object> of(WorkerConfigs configs, Boolean leader) {
        Map<String, Object> report = new LinkedHashMap<>();
        report.put("worker_id", configs.advertised().map(Advertised::workerId).orElse(null));
        report.put("leader", leader);
        report.put("plugin_version", WorkerConfigExtension.pluginVersion());
        report.put("mode", configs.settings().map(StatusReport::mode).orElse(null));
        Overrides overrides = configs.overrides().orElse(null);
        report.put("seen", overrides == null || overrides.seen() == null ? null
                : Map.of("offset", overrides.seen()));
        Overrides.Applied applied = overrides == null ? null : overrides.applied();
        report.put("applied", applied == null ? null : applied(applied));
        report.put("error", error(configs));
        report.put("overrides", applied == null ? List.of() : applied.keys());
        report.put("whitelist", configs.settings().map(Settings::whitelist).orElse(Set.of()));
        report.put("listeners", configs.listeners().map(TlsListeners::listeners).orElse(List.of()).stream()
                .map(StatusReport::listener).toList());
        return report;
    }

    private static String mode(Settings settings) {
        return settings.distributed() ? "distributed" : "standalone";
    }

    private static Map<String, Object> applied(Overrides.Applied applied) {
        Map<String, Object> shown = new LinkedHashMap<>();
        shown.put("offset", applied.offset());
        shown.put("at", applied.at().toString());
        shown.put("sha256", applied.sha256());
        return shown;
    }

    private static Map<String, Object> error(WorkerConfigs configs) {
        Overrides.Failure failure = configs.reason()
                .map(reason -> new Overrides.Failure(null, Instant.now(), reason))
                .orElseGet(() -> configs.overrides().map(Overrides::failure).orElse(null));
        if (failure == null) {
            return null;
        }
        Map<String, Object> shown = new LinkedHashMap<>();
        shown.put("offset", failure.offset());
        shown.put("at", failure.at().toString());
        shown.put("message", failure.message());
        return shown;
    }

    private static Map<String, Object> listener(TlsListeners.Listener listener) {
        Map<String, Object> shown = new LinkedHashMap<>();
        shown.put("name", listener.name());
        shown.put("port", listener.port());
        shown.put("certificate", listener.certificate().map(StatusReport::certificate).orElse(null));
        return shown;
    }

    private static Map<String, Object> certificate(X509Certificate certificate) {
        Map<String, Object> shown = new LinkedHashMap<>();
        try {
            byte[] digest = MessageDigest.getInstance("SHA-256").digest(certificate.getEncoded());
            shown.put("sha256", HexFormat.of().formatHex(digest));
        } catch (NoSuchAlgorithmException | CertificateEncodingException e) {
            throw new IllegalStateException("a served certificate can always be hashed", e);
        }
        shown.put("subject", certificate.getSubjectX500Principal().getName());
        shown.put("issuer", certificate.getIssuerX500Principal().getName());
        shown.put("not_before", certificate.getNotBefore().toInstant().toString());
        shown.put("not_after", certificate.getNotAfter().toInstant().toString());
        return shown;
    }
}
