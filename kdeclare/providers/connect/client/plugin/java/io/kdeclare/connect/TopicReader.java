package io.kdeclare.connect;

import java.io.IOException;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Follows the config topic on a thread of its own, and tells of the overrides that stand in it. */
final class TopicReader implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(TopicReader.class);
    private static final Duration IDLE = Duration.ofSeconds(1);
    private static final Duration REQUEST = Duration.ofSeconds(10);
    private static final long TOPIC_POLL_MS = 100;
    private static final long RETRY_MS = 1_000;
    private static final long CLOSE_MS = 5_000;

    /** Somebody who waits until this position is reached. */
    private record Waiter(long position, CompletableFuture<Void> reached) { }

    /** The last record of overrides, and the last of them that can be read. */
    private record Latest(ConsumerRecord<byte[], byte[]> any, ConsumerRecord<byte[], byte[]> readable) {
        static final Latest NONE = new Latest(null, null);

        Latest with(ConsumerRecord<byte[], byte[]> record) {
            return new Latest(record, Envelope.isReadable(record.value()) ? record : readable);
        }
    }

    private final Clients clients;
    private final TopicPartition partition;
    private final Store.Listener listener;
    private final Thread thread;
    private final CountDownLatch replayed = new CountDownLatch(1);
    private final Queue<Waiter> waiters = new ConcurrentLinkedQueue<>();
    private volatile Consumer<byte[], byte[]> consumer;
    private volatile boolean closed;
    private volatile Map<String, String> current;
    private volatile String lost;
    private long told = -1;

    TopicReader(Clients clients, String topic, Store.Listener listener) {
        this.clients = clients;
        this.partition = new TopicPartition(topic, 0);
        this.listener = listener;
        this.thread = new Thread(this::run, "kdeclare-worker-config");
        thread.setDaemon(true);
    }

    void start() {
        thread.start();
    }

    /** Whether all that stood there at the start has been told, at the latest after so long. */
    boolean awaitReplay(Duration limit) throws InterruptedException {
        return replayed.await(limit.toMillis(), TimeUnit.MILLISECONDS);
    }

    /** The last overrides that could be read. @throws StoreException when there are such, and none could be */
    Map<String, String> current() {
        if (current == null && lost != null) {
            throw new StoreException("Nothing was written: a change would lose what is stored, since that cannot be"
                    + " read (" + lost + "). To begin anew, write a tombstone with the key " + Envelope.KEY
                    + " to partition 0 of " + partition.topic() + ".");
        }
        return current == null ? Map.of() : current;
    }

    /** Wait until all records before this position have been told. */
    void readTo(long position, Duration limit) {
        Waiter waiter = new Waiter(position, new CompletableFuture<>());
        waiters.add(waiter);
        wake();
        try {
            waiter.reached().get(limit.toMillis(), TimeUnit.MILLISECONDS);
        } catch (TimeoutException e) {
            throw new StoreException("The topic " + partition.topic() + " could not be read to its end within "
                    + limit.toSeconds() + " s.");
        } catch (ExecutionException e) {
            throw new StoreException(Messages.of(e.getCause()));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new StoreException("The worker is shutting down.");
        } finally {
            waiters.remove(waiter);
        }
    }

    @Override
    public void close() {
        closed = true;
        wake();
        try {
            thread.join(CLOSE_MS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void wake() {
        Consumer<byte[], byte[]> running = consumer;
        if (running != null) {
            running.wakeup();
        }
    }

    private void run() {
        while (!closed) {
            try (Consumer<byte[], byte[]> made = clients.consumer()) {
                consumer = made;
                awaitTopic();
                follow();
            } catch (WakeupException e) {
                LOG.debug("Woken up while starting to read");
            } catch (RuntimeException | LinkageError e) {
                LOG.debug("Cannot follow {}: {}", partition, Messages.kinds(e));
                listener.trouble("The topic " + partition.topic() + " cannot be read: " + Messages.of(e));
                waiters.forEach(waiter -> waiter.reached().completeExceptionally(e));
                pause(RETRY_MS);
            } finally {
                consumer = null;
            }
        }
    }

    /** The worker makes the topic, right after it has started this extension or before. */
    private void awaitTopic() {
        List<PartitionInfo> found = consumer.partitionsFor(partition.topic(), REQUEST);
        while (!closed && (found == null || found.isEmpty())) {
            listener.trouble("There is no topic " + partition.topic() + ".");
            pause(TOPIC_POLL_MS);
            found = consumer.partitionsFor(partition.topic(), REQUEST);
        }
    }

    private void follow() {
        consumer.assign(List.of(partition));
        consumer.seekToBeginning(List.of(partition));
        replay();
        listener.trouble("");
        replayed.countDown();
        while (!closed) {
            try {
                serve();
                tell(latest(Latest.NONE));
            } catch (WakeupException e) {
                LOG.trace("Somebody waits, or it is time to close");
            }
        }
    }

    /** What counts of the past is its last record, and the last that can be read: not all changes again. */
    private void replay() {
        long end = consumer.endOffsets(List.of(partition), REQUEST).get(partition);
        Latest found = Latest.NONE;
        while (!closed && consumer.position(partition, REQUEST) < end) {
            found = latest(found);
        }
        tell(found);
    }

    /** Poll once; the latest of what was found before and what comes. */
    private Latest latest(Latest before) {
        Latest found = before;
        for (ConsumerRecord<byte[], byte[]> record : consumer.poll(IDLE)) {
            if (Arrays.equals(record.key(), Envelope.key())) {
                found = found.with(record);
            }
        }
        return found;
    }

    private void tell(Latest found) {
        tell(found.readable());
        tell(found.any());
    }

    private void tell(ConsumerRecord<byte[], byte[]> record) {
        if (record == null || record.offset() <= told) {
            return;
        }
        told = record.offset();
        Map<String, String> raw;
        try {
            raw = Envelope.read(record.value());
        } catch (IOException e) {
            lost = "offset " + record.offset() + ": " + e.getMessage();
            listener.unreadable(record.offset(), e.getMessage());
            return;
        }
        current = raw;
        listener.updated(record.offset(), raw);
    }

    private void serve() {
        long position = consumer.position(partition, REQUEST);
        for (Waiter waiter : waiters) {
            if (position >= waiter.position()) {
                waiter.reached().complete(null);
            }
        }
    }

    private void pause(long milliseconds) {
        try {
            Thread.sleep(milliseconds);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            closed = true;
        }
    }
}
