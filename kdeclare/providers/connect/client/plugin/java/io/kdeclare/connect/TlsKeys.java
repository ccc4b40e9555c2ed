package io.kdeclare.connect;

import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

/** The keys of the HTTPS listener, and how they are combined from a worker's file and its overrides. */
final class TlsKeys {
    static final String PREFIX = "listeners.https.";
    static final String KEYSTORE_LOCATION = PREFIX + "ssl.keystore.location";
    static final String KEYSTORE_PASSWORD = PREFIX + "ssl.keystore.password";
    static final String KEYSTORE_TYPE = PREFIX + "ssl.keystore.type";
    static final String KEY_PASSWORD = PREFIX + "ssl.key.password";
    static final String TRUSTSTORE_LOCATION = PREFIX + "ssl.truststore.location";
    static final String TRUSTSTORE_PASSWORD = PREFIX + "ssl.truststore.password";
    static final String TRUSTSTORE_TYPE = PREFIX + "ssl.truststore.type";

    /** The keys that can be changed while the listener runs; the whitelist is a subset. */
    static final Set<String> RELOADABLE = new TreeSet<>(Set.of(
            KEYSTORE_LOCATION,
            KEYSTORE_PASSWORD,
            KEYSTORE_TYPE,
            KEY_PASSWORD,
            TRUSTSTORE_LOCATION,
            TRUSTSTORE_PASSWORD,
            TRUSTSTORE_TYPE,
            PREFIX + "ssl.enabled.protocols",
            PREFIX + "ssl.cipher.suites",
            PREFIX + "ssl.client.auth"));

    private static final String UNPREFIXED = "ssl.";

    private TlsKeys() { }

    /**
     * The worker's file combined with the overrides.
     *
     * <p>Connect uses either all plain {@code ssl.*} keys or, as soon as there is one {@code listeners.https.*} key,
     * only those. So the plain keys are first copied under the prefix. Otherwise one override would remove the
     * truststore, and {@code ssl.client.auth=required} with it.
     */
    static Map<String, String> merged(Map<String, String> worker, Map<String, String> overrides) {
        Map<String, String> merged = new HashMap<>(worker);
        if (worker.keySet().stream().noneMatch(key -> key.startsWith(PREFIX))) {
            worker.forEach((key, value) -> {
                if (key.startsWith(UNPREFIXED)) {
                    merged.put(PREFIX + key, value);
                }
            });
        }
        merged.putAll(overrides);
        return merged;
    }
}
