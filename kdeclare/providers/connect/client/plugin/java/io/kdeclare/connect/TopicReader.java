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

/** Follows the config topic on its own thread, and reports the overrides in it. */
final class TopicReader implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(TopicReader.class);
    private static final Duration IDLE = Duration.ofSeconds(1);
    private static final Duration REQUEST = Duration.ofSeconds(10);
    private static final long TOPIC_POLL_MS = 100;
    private static final long RETRY_MS = 1_000;
    private static final long CLOSE_MS = 5_000;

    /** A waiter for this position. */
    private record Waiter(long position, CompletableFuture<Void> reached) { }

    /** The last record of overrides, and the last one that can be read. */
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

    /** Wait, up to a limit, until everything stored at the start was reported; return whether it was. */
    boolean awaitReplay(Duration limit) throws InterruptedException {
        return replayed.await(limit.toMillis(), TimeUnit.MILLISECONDS);
    }

    /** The last overrides that could be read. @throws StoreException if there are some, but none could be read */
    Map<String, String> current() {
        if (current == null && lost != null) {
            throw new StoreException("Nothing was written: a change would lose the stored overrides, which cannot be"
                    + " read (" + lost + "). To start over, write a tombstone with the key " + Envelope.KEY
                    + " to partition 0 of " + partition.topic() + ".");
        }
        return current == null ? Map.of() : current;
    }

    /** Wait until all records before this position were reported. */
    void readTo(long position, Duration limit) {
        Waiter waiter = new Waiter(position, new CompletableFuture<>());
        waiters.add(waiter);
        wake();
        try {
            waiter.reached().get(limit.toMillis(), TimeUnit.MILLISECONDS);
        } catch (TimeoutException e) {
            throw new StoreException("The topic " + partition.topic() + " could not be read completely within "
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

    /** The worker creates the topic, either before it starts this extension or right afterwards. */
    private void awaitTopic() {
        List<PartitionInfo> found = consumer.partitionsFor(partition.topic(), REQUEST);
        while (!closed && (found == null || found.isEmpty())) {
            listener.trouble("The topic " + partition.topic() + " does not exist.");
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
                LOG.trace("Woken up by a waiter, or to close");
            }
        }
    }

    /** Of the past, only the last record and the last one that can be read matter, not all changes again. */
    private void replay() {
        long end = consumer.endOffsets(List.of(partition), REQUEST).get(partition);
        Latest found = Latest.NONE;
        while (!closed && consumer.position(partition, REQUEST) < end) {
            found = latest(found);
        }
        tell(found);
    }

    /** Poll once; keep the latest of the previous and the new records. */
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
