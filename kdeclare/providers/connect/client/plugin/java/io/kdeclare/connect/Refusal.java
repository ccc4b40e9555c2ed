package io.kdeclare.connect;

import org.apache.kafka.common.config.ConfigException;

/**
 * Overrides that this worker cannot apply, with the invalid key and a reason for people.
 * The reason never contains a resolved value, and there is no cause that could.
 */
final class Refusal extends ConfigException {
    private static final long serialVersionUID = 1L;

    private final String key;

    Refusal(String key, String reason) {
        super(Messages.withoutControls(reason));
        this.key = key;
    }

    /** The key that caused the refusal, or an empty string if several did. */
    String key() {
        return key;
    }

    /** The key and the reason in one line. */
    String line() {
        return key.isEmpty() ? getMessage() : Messages.withoutControls(key) + ": " + getMessage();
    }
}
