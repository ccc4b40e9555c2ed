package io.kdeclare.connect;

import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * The worker's own settings for dynamic overrides.
 *
 * <p>{@code worker}: the whole configuration, as strings. {@code topic}, {@code transactionalId}: of distributed
 * workers. {@code file}: of a standalone worker, or null. {@code checkTrust}: whether to refuse a certificate that
 * the other workers would not accept. {@code replay}: how long a starting worker delays its first request.
 * {@code allowed}: the folders below which overrides may name key stores; if empty, anywhere. Access is configured
 * separately: {@link Access}.
 */
record Settings(
        Map<String, String> worker,
        boolean distributed,
        String topic,
        String transactionalId,
        Path file,
        boolean checkTrust,
        Duration replay,
        List<Path> allowed,
        Set<String> whitelist) {

    static final String PREFIX = "kdeclare.worker.config.";
    static final String WHITELIST = PREFIX + "whitelist";
    static final String FILE = PREFIX + "file";
    static final String ALLOWED_PATHS = PREFIX + "allowed.paths";

    /** KIP-1185, phase 1. */
    private static final List<String> DEFAULT_WHITELIST = List.of(
            TlsKeys.KEYSTORE_LOCATION,
            TlsKeys.KEYSTORE_PASSWORD,
            TlsKeys.KEYSTORE_TYPE,
            TlsKeys.KEY_PASSWORD,
            TlsKeys.TRUSTSTORE_LOCATION,
            TlsKeys.TRUSTSTORE_PASSWORD,
            TlsKeys.TRUSTSTORE_TYPE);
    private static final int REPLAY_MS = 20_000;

    /** Read the settings. @throws Refusal if one of them is invalid */
    static Settings of(Map<String, ?> configs) {
        Map<String, String> worker = new TreeMap<>();
        configs.forEach((key, value) -> {
            if (value != null) {
                worker.put(key, value.toString());
            }
        });
        String group = worker.get("group.id");
        String topic = worker.getOrDefault(PREFIX + "topic", worker.get("config.storage.topic"));
        // With Connect's own prefix, so that the ACL that Connect needs for its transactions also covers this id.
        String transactionalId =
                worker.getOrDefault(PREFIX + "transactional.id", "connect-cluster-" + group + "-worker-config");
        return new Settings(
                worker,
                group != null && topic != null,
                topic,
                transactionalId,
                path(FILE, worker.get(FILE)),
                Boolean.parseBoolean(worker.getOrDefault(PREFIX + "trust.check", "true")),
                Duration.ofMillis(number(worker, PREFIX + "replay.timeout.ms", REPLAY_MS)),
                allowed(worker.get(ALLOWED_PATHS)),
                whitelist(worker.get(WHITELIST)));
    }

    private static Path path(String key, String value) {
        try {
            return value == null || value.isBlank() ? null : Path.of(value.trim());
        } catch (InvalidPathException e) {
            throw new Refusal(key, "This is not a path.");
        }
    }

    private static List<Path> allowed(String value) {
        if (value == null || value.isBlank()) {
            return List.of();
        }
        return Arrays.stream(value.trim().split("\\s*,\\s*")).map(Settings::folder).toList();
    }

    private static Path folder(String value) {
        Path folder = path(ALLOWED_PATHS, value);
        if (folder == null || !folder.isAbsolute()) {
            throw new Refusal(ALLOWED_PATHS, "Each folder must be an absolute path.");
        }
        return folder.normalize();
    }

    private static int number(Map<String, String> worker, String key, int otherwise) {
        String value = worker.get(key);
        try {
            return value == null ? otherwise : Integer.parseInt(value.trim());
        } catch (NumberFormatException e) {
            throw new Refusal(key, "This must be a number of milliseconds.");
        }
    }

    private static Set<String> whitelist(String value) {
        if (value == null) {
            return new TreeSet<>(DEFAULT_WHITELIST);
        }
        Set<String> keys = new TreeSet<>(Arrays.asList(value.trim().split("\\s*,\\s*")));
        keys.remove("");
        for (String key : keys) {
            if (!TlsKeys.RELOADABLE.contains(key)) {
                throw new Refusal(WHITELIST, "This worker has no component that can change " + key + " while it runs.");
            }
        }
        return keys;
    }
}
