package io.kdeclare.connect;

import org.apache.kafka.common.KafkaException;

/**
 * The overrides could not be written, or not be read back in time; the message says whether they may have been
 * written. There is no cause: Connect logs causes, and these can quote the worker's own passwords.
 */
final class StoreException extends KafkaException {
    private static final long serialVersionUID = 1L;

    StoreException(String message) {
        super(message);
    }
}
