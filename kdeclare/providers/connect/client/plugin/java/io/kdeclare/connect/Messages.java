package io.kdeclare.connect;

import java.util.LinkedHashSet;
import java.util.Set;

import org.apache.kafka.common.errors.ApiException;

/**
 * Texts about failures for people.
 *
 * <p>Repeats only messages that cannot contain a resolved value: those of this plug-in, of Kafka's protocol, and
 * about classes. Other messages, such as those of config providers, Jetty or Java's key stores, can quote a
 * secret; for these, only the exception classes are given.
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

    /** The classes of an exception and its causes, without their messages. */
    static String kinds(Throwable failure) {
        Set<String> kinds = new LinkedHashSet<>();
        for (Throwable cause = failure; cause != null && kinds.size() < 8; cause = cause.getCause()) {
            kinds.add(cause.getClass().getSimpleName());
        }
        return String.join(", caused by ", kinds);
    }

    /** The text for one line of a log; keys and values can contain any characters. */
    static String withoutControls(String text) {
        return text.replaceAll("\\p{Cntrl}", "?");
    }
}
