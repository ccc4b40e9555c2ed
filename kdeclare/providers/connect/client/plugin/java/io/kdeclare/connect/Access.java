package io.kdeclare.connect;

import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.Map;

/**
 * The clients that may use the endpoints: the administrators in a file, everyone if configured so, or no one.
 *
 * <p>Read separately from the other settings, because a mistake in those must not grant access. {@code admins}:
 * the file of names and passwords, or null. {@code denial}: why all access is denied; empty if it is not.
 */
record Access(Path admins, boolean open, String denial) {
    static final String ADMINS_FILE = Settings.PREFIX + "admins.file";
    static final String OPEN = Settings.PREFIX + "open";

    private static final String NOBODY = "Access denied: this worker's configuration names no administrators. "
            + "Set " + ADMINS_FILE + " to a file with name=password lines, or " + OPEN + "=true to allow everyone.";

    /** Never throws: an invalid configuration becomes the denial. */
    static Access of(Map<String, ?> worker) {
        String file = text(worker, ADMINS_FILE);
        String open = text(worker, OPEN);
        if (!open.isEmpty() && !"true".equals(open) && !"false".equals(open)) {
            return denied("Access denied: " + OPEN + " must be true or false.");
        }
        if ("true".equals(open)) {
            return file.isEmpty() ? new Access(null, true, "")
                    : denied("Access denied: " + OPEN + "=true and " + ADMINS_FILE
                            + " contradict each other. Remove one of them.");
        }
        if (file.isEmpty()) {
            return denied(NOBODY);
        }
        try {
            return new Access(Path.of(file), false, "");
        } catch (InvalidPathException e) {
            return denied("Access denied: " + ADMINS_FILE + " is not a path.");
        }
    }

    private static Access denied(String why) {
        return new Access(null, false, why);
    }

    private static String text(Map<String, ?> worker, String key) {
        Object value = worker.get(key);
        return value == null ? "" : value.toString().trim();
    }
}
