package io.kdeclare.connect;

import java.time.Duration;
import java.util.Map;
import java.util.function.UnaryOperator;

/** The storage of the overrides: the config topic of distributed workers, or a file of a standalone one. */
interface Store extends AutoCloseable {

    /** Notified of every version of the overrides, in order, on one thread at a time. */
    interface Listener {

        /** These are the current raw overrides; {@code offset} grows with each version. */
        void updated(long offset, Map<String, String> raw);

        /** There is a version that is not a map of overrides. */
        void unreadable(long offset, String reason);

        /** The store cannot be followed at the moment; an empty reason means that it can be followed again. */
        void trouble(String reason);
    }

    /** Start to follow the store. */
    void start(Listener listener);

    /** Wait until the listener was notified of everything stored at the start; return whether it was. */
    boolean awaitStart(Duration limit) throws InterruptedException;

    /**
     * Replace the overrides by the result of {@code change}, one change at a time in the whole cluster.
     * Returns when this worker's listener has been notified of the result.
     *
     * @throws StoreException if they could not be written; exceptions of {@code change} are passed on, and then
     *     nothing is written
     */
    void update(UnaryOperator<Map<String, String>> change);

    @Override
    void close();
}
