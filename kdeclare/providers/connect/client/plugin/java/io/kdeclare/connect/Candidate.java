package io.kdeclare.connect;

import java.util.Map;

/**
 * Overrides that a worker is asked to take.
 *
 * <p>{@code merged}: the worker's whole configuration with the overrides laid over it, placeholders resolved.
 * {@code raw}: the overrides as they were written. Resolved values can be secrets, whatever key they are under,
 * so messages are made from {@link #describe} and never from {@code merged}.
 */
record Candidate(Map<String, String> merged, Map<String, String> raw) {
    private static final String PASSWORD = ".password";

    /** Whether the key's value comes from an override, and not from the worker's own configuration. */
    boolean isOverridden(String key) {
        return raw.containsKey(key);
    }

    /** The value, of a location or another key without a password, as it was written: placeholders and all. */
    String describe(String key) {
        String written = raw.get(key);
        if (written == null) {
            return "the file that this worker's own configuration names";
        }
        return key.endsWith(PASSWORD) ? "the value" : written;
    }
}
