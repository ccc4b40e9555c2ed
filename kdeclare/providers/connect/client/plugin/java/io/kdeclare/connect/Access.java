package io.kdeclare.connect;

import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.Map;

/**
 * Who may use the endpoints: the administrators of a file, everybody where that was said, otherwise nobody.
 *
 * <p>Read apart from the other settings: a mistake in those must not open anything. {@code admins}: the file of
 * names and passwords, or null. {@code denial}: why nobody may; empty where somebody may.
 */
record Access(Path admins, boolean open, String denial) {
    static final String ADMINS_FILE = Settings.PREFIX + "admins.file";
    static final String OPEN = Settings.PREFIX + "open";

    private static final String NOBODY = "Nobody may use this: this worker's configuration does not say who may. "
            + "Set " + ADMINS_FILE + " to a file with name=password lines, or " + OPEN + "=true to let everybody.";

    /** Never throws: what is wrong is the denial. */
    static Access of(Map<String, ?> worker) {
        String file = text(worker, ADMINS_FILE);
        String open = text(worker, OPEN);
        if (!open.isEmpty() && !"true".equals(open) && !"false".equals(open)) {
            return denied("Nobody may use this: " + OPEN + " has to be true or false.");
        }
        if ("true".equals(open)) {
            return file.isEmpty() ? new Access(null, true, "")
                    : denied("Nobody may use this: " + OPEN + "=true and " + ADMINS_FILE
                            + " contradict each other. Remove one of them.");
        }
        if (file.isEmpty()) {
            return denied(NOBODY);
        }
        try {
            return new Access(Path.of(file), false, "");
        } catch (InvalidPathException e) {
            return denied("Nobody may use this: " + ADMINS_FILE + " is not a path.");
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
