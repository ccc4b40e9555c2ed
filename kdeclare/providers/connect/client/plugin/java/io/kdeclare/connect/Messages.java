package io.kdeclare.connect;

import java.util.LinkedHashSet;
import java.util.Set;

import org.apache.kafka.common.errors.ApiException;

/**
 * What to tell people of a failure.
 *
 * <p>Only messages that are known to hold no resolved value are repeated: this plug-in's own, those of Kafka's
 * protocol, and those about classes. Others, as of a config provider, of Jetty or of Java's key stores, can quote
 * a secret; of these the kinds of the exceptions are told.
 */
final class Messages {
    private Messages() { }

    static String of(Throwable failure) {
        if (failure instanceof Refusal refusal) {
            return refusal.line();
        }
        boolean isSafe = failure instanceof StoreException || failure instanceof ApiException
                || failure instanceof LinkageError;
        String message = isSafe ? failure.getMessage() : null;
        return message == null || message.isBlank() ? kinds(failure) : withoutControls(message);
    }

    /** The classes of an exception and of its causes, without what they say. */
    static String kinds(Throwable failure) {
        Set<String> kinds = new LinkedHashSet<>();
        for (Throwable cause = failure; cause != null && kinds.size() < 8; cause = cause.getCause()) {
            kinds.add(cause.getClass().getSimpleName());
        }
        return String.join(", caused by ", kinds);
    }

    /** In one line of a log, whatever somebody has written into a key or a value. */
    static String withoutControls(String text) {
        return text.replaceAll("\\p{Cntrl}", "?");
    }
}
