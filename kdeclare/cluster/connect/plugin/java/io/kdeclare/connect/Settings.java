package io.kdeclare.connect;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * What the worker's own configuration says about dynamic overrides.
 *
 * <p>{@code worker}: all of it, as strings. {@code topic}, {@code transactionalId}: of distributed workers.
 * {@code file}: of a standalone worker, or null. {@code admins}: a properties file of names and passwords, or
 * null where everybody may do everything. {@code checkTrust}: whether a certificate that the other workers
 * would not accept is refused. {@code replay}: how long a starting worker holds back its first request.
 */
record Settings(
        Map<String, String> worker,
        boolean distributed,
        String topic,
        String transactionalId,
        Path file,
        Path admins,
        boolean checkTrust,
        Duration replay,
        Set<String> whitelist) {

    static final String PREFIX = "kdeclare.worker.config.";
    static final String WHITELIST = PREFIX + "whitelist";
    static final String FILE = PREFIX + "file";

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

    /** Read them. @throws Refusal when one of them is wrong */
    static Settings of(Map<String, ?> configs) {
        Map<String, String> worker = new TreeMap<>();
        configs.forEach((key, value) -> {
            if (value != null) {
                worker.put(key, value.toString());
            }
        });
        String group = worker.get("group.id");
        String topic = worker.getOrDefault(PREFIX + "topic", worker.get("config.storage.topic"));
        // Under Connect's own prefix, so that the access it already needs for its transactions covers this one.
        String transactionalId =
                worker.getOrDefault(PREFIX + "transactional.id", "connect-cluster-" + group + "-worker-config");
        return new Settings(
                worker,
                group != null && topic != null,
                topic,
                transactionalId,
                path(worker.get(FILE)),
                path(worker.get(PREFIX + "admins.file")),
                Boolean.parseBoolean(worker.getOrDefault(PREFIX + "trust.check", "true")),
                Duration.ofMillis(number(worker, PREFIX + "replay.timeout.ms", REPLAY_MS)),
                whitelist(worker.get(WHITELIST)));
    }

    private static Path path(String value) {
        return value == null || value.isBlank() ? null : Path.of(value.trim());
    }

    private static int number(Map<String, String> worker, String key, int otherwise) {
        String value = worker.get(key);
        try {
            return value == null ? otherwise : Integer.parseInt(value.trim());
        } catch (NumberFormatException e) {
            throw new Refusal(key, "This has to be a number of milliseconds.");
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
                throw new Refusal(WHITELIST, "Nothing in this worker can take " + key + " while it runs.");
            }
        }
        return keys;
    }
}
