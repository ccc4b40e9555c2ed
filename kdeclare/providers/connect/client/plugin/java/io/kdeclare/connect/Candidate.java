package io.kdeclare.connect;

import java.util.Map;

/**
 * Overrides that a worker is asked to apply.
 *
 * <p>{@code merged}: the worker's whole configuration including the overrides, with placeholders resolved.
 * {@code raw}: the overrides as written. Resolved values of any key can be secret, so messages use
 * {@link #describe} and never {@code merged}.
 */
record Candidate(Map<String, String> merged, Map<String, String> raw) {
    private static final String PASSWORD = ".password";

    /** Whether the key's value comes from an override, and not from the worker's own configuration. */
    boolean isOverridden(String key) {
        return raw.containsKey(key);
    }

    /** The value of a key that is not a password, as written, including placeholders. */
    String describe(String key) {
        String written = raw.get(key);
        if (written == null) {
            return "the file that this worker's own configuration names";
        }
        return key.endsWith(PASSWORD) ? "the value" : written;
    }
}
