package io.kdeclare.connect;

import java.time.Duration;
import java.util.Map;
import java.util.function.UnaryOperator;

/** Where the overrides are kept: the config topic of distributed workers, a file of a standalone one. */
interface Store extends AutoCloseable {

    /** Told of every version of the overrides, in order, on one thread at a time. */
    interface Listener {

        /** The overrides are these now, as raw as they were written; {@code offset} grows with each version. */
        void updated(long offset, Map<String, String> raw);

        /** There is a version that is no map of overrides. */
        void unreadable(long offset, String reason);

        /** The store cannot be followed for the moment; an empty reason: it can again. */
        void trouble(String reason);
    }

    /** Begin to follow the store. */
    void start(Listener listener);

    /** Wait until all that was there at the start has been told; return whether it has. */
    boolean awaitStart(Duration limit) throws InterruptedException;

    /**
     * Replace the overrides by what {@code change} makes of them, one change at a time in the whole cluster.
     * Return when this worker's listener has been told of the result.
     *
     * @throws StoreException when they could not be written; what {@code change} throws is passed on, and
     *     nothing is written then
     */
    void update(UnaryOperator<Map<String, String>> change);

    @Override
    void close();
}
