package io.kdeclare.connect;

import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.UnaryOperator;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListOffsetsOptions;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidPidMappingException;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.utils.Utils;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The overrides in Connect's config topic.
 *
 * <p>Only the leader is asked to write, but this check is not a fence: a worker that has just lost the leadership
 * may still be writing. Therefore all writers share one transactional id. The last one to start fences the others
 * before it reads, and a fenced writer starts again with reading.
 */
final class TopicStore implements Store {
    private static final Logger LOG = LoggerFactory.getLogger(TopicStore.class);
    private static final int ATTEMPTS = 6;
    private static final long BACKOFF_MS = 40;
    private static final Duration PATIENCE = Duration.ofSeconds(20);
    private static final Duration CLOSE = Duration.ofSeconds(2);

    private final Clients clients;
    private final String topic;
    private final ReentrantLock writing = new ReentrantLock(true);
    private TopicReader reader;
    private Admin admin;
    private Producer<byte[], byte[]> producer;

    TopicStore(Settings settings) {
        this.clients = new Clients(settings);
        this.topic = settings.topic();
    }

    @Override
    public void start(Listener listener) {
        reader = new TopicReader(clients, topic, listener);
        reader.start();
    }

    @Override
    public boolean awaitStart(Duration limit) throws InterruptedException {
        return reader.awaitReplay(limit);
    }

    @Override
    public void update(UnaryOperator<Map<String, String>> change) {
        lock();
        try {
            for (int attempt = 1; !attempted(change); attempt++) {
                if (attempt == ATTEMPTS) {
                    throw new StoreException("Other workers wrote at the same time, " + ATTEMPTS
                            + " times in a row. It is unknown whether the change was written; check before retrying.");
                }
                LOG.info("Another worker is also writing overrides; trying again");
                pause(ThreadLocalRandom.current().nextLong(BACKOFF_MS << attempt));
            }
        } finally {
            writing.unlock();
        }
    }

    @Override
    public void close() {
        if (reader != null) {
            reader.close();
        }
        letGo();
    }

    /** Whether it was written; false if another writer came first and nothing was written. */
    private boolean attempted(UnaryOperator<Map<String, String>> change) {
        try {
            fence();
            reader.readTo(end(), PATIENCE);
        } catch (ExecutionException | RuntimeException e) {
            if (isFenced(e)) {
                letGo();
                return false;
            }
            throw failed("Nothing was written: ", e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw failed("Nothing was written: ", e);
        }
        Map<String, String> wanted = change.apply(reader.current());
        long offset;
        try {
            producer.beginTransaction();
            offset = producer.send(new ProducerRecord<>(topic, 0, Envelope.key(), Envelope.write(wanted)))
                    .get().offset();
        } catch (ExecutionException | RuntimeException e) {
            if (isFenced(e)) {
                letGo();
                return false;
            }
            throw failed("Nothing was written: ", e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw failed("Nothing was written: ", e);
        }
        return committed(offset);
    }

    private boolean committed(long offset) {
        try {
            producer.commitTransaction();
        } catch (RuntimeException e) {
            if (isFenced(e)) {
                letGo();
                return false;
            }
            throw failed("It is unknown whether the change was written; check before retrying: ", e);
        }
        try {
            reader.readTo(offset + 1, PATIENCE);
        } catch (RuntimeException e) {
            throw failed("The change was written, but this worker has not read it back: ", e);
        }
        return true;
    }

    private void fence() {
        if (producer == null) {
            admin = clients.admin();
            producer = clients.producer();
            producer.initTransactions();
        }
    }

    /** The position after all committed records. */
    private long end() throws ExecutionException, InterruptedException {
        TopicPartition partition = new TopicPartition(topic, 0);
        ListOffsetsOptions committed = new ListOffsetsOptions(IsolationLevel.READ_COMMITTED);
        return admin.listOffsets(Map.of(partition, OffsetSpec.latest()), committed)
                .partitionResult(partition).get().offset();
    }

    /** Close the clients; closing the producer aborts an open transaction. */
    private void letGo() {
        Utils.closeQuietly(producer == null ? null : () -> producer.close(CLOSE), "producer of overrides");
        Utils.closeQuietly(admin == null ? null : () -> admin.close(CLOSE), "admin client of overrides");
        producer = null;
        admin = null;
    }

    private StoreException failed(String what, Exception cause) {
        letGo();
        Throwable root = cause instanceof ExecutionException ? cause.getCause() : cause;
        return new StoreException(what + Messages.of(root));
    }

    private void lock() {
        try {
            if (!writing.tryLock(PATIENCE.toMillis(), TimeUnit.MILLISECONDS)) {
                throw new StoreException("Another change is still being written. Nothing was written.");
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new StoreException("The worker is shutting down. Nothing was written.");
        }
    }

    private static boolean isFenced(Throwable failure) {
        for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
            if (cause instanceof ProducerFencedException
                    || cause instanceof InvalidProducerEpochException
                    || cause instanceof InvalidPidMappingException) {
                return true;
            }
        }
        return false;
    }

    private static void pause(long milliseconds) {
        try {
            Thread.sleep(milliseconds);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new StoreException("The worker is shutting down. Nothing was written.");
        }
    }
}
