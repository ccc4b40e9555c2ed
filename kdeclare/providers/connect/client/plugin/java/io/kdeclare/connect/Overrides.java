package io.kdeclare.connect;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Instant;
import java.util.HexFormat;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** How far this worker is with the overrides: what it has seen, what it has applied, what it refused. */
final class Overrides implements Store.Listener {

    /** A version that is in force. {@code sha256}: of the raw map as canonical JSON. */
    record Applied(long offset, Instant at, String sha256, Set<String> keys) { }

    /** A version that was refused; {@code offset} is null for trouble with the store itself. */
    record Failure(Long offset, Instant at, String message) { }

    private static final Logger LOG = LoggerFactory.getLogger(Overrides.class);
    private static final ObjectMapper JSON = new ObjectMapper();

    private final Components components;
    private Map<String, String> raw;
    private Long read;
    private Long seen;
    private Applied applied;
    private Failure refused;
    private Failure trouble;

    Overrides(Components components) {
        this.components = components;
    }

    /** Let a component take part; what is overridden already, it takes at once. */
    synchronized void register(Component component) {
        components.add(component);
        if (read != null) {
            Failure before = refused;
            take(read);
            if (before != null && before.offset() > read) {
                // What came later and could not be read, is told of until something can be.
                refused = before;
            }
        }
    }

    @Override
    public synchronized void updated(long offset, Map<String, String> overrides) {
        seen = offset;
        read = offset;
        raw = new TreeMap<>(overrides);
        if (!components.isEmpty()) {
            take(offset);
        }
    }

    @Override
    public synchronized void unreadable(long offset, String reason) {
        seen = offset;
        refuse(offset, "What is stored cannot be read: " + reason);
    }

    @Override
    public synchronized void trouble(String reason) {
        if (reason.isEmpty()) {
            trouble = null;
        } else if (trouble == null || !trouble.message().equals(reason)) {
            LOG.warn("Dynamic worker configuration: {}", reason);
            trouble = new Failure(null, Instant.now(), reason);
        }
    }

    /**
     * The overrides of the cluster, whether this worker could apply them or not.
     *
     * @throws StoreException where there are some, and none that this worker could read
     */
    synchronized Map<String, String> raw() {
        if (raw == null && seen != null) {
            throw new StoreException("The overrides are not known. " + refused.message());
        }
        return last();
    }

    /** The last overrides that this worker could read; empty where there were none. */
    synchronized Map<String, String> last() {
        return raw == null ? Map.of() : raw;
    }

    synchronized Long seen() {
        return seen;
    }

    synchronized Applied applied() {
        return applied;
    }

    /** The version that this worker refused, unless a later one has been applied; else trouble with the store. */
    synchronized Failure failure() {
        return refused != null ? refused : trouble;
    }

    /** SHA-256, in hex, of a map as JSON with sorted keys and no white space. */
    static String sha256(Map<String, String> map) {
        try {
            byte[] canonical = JSON.writeValueAsString(new TreeMap<>(map)).getBytes(StandardCharsets.UTF_8);
            return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(canonical));
        } catch (JsonProcessingException | NoSuchAlgorithmException e) {
            throw new IllegalStateException("every Java can do this", e);
        }
    }

    private void take(long offset) {
        try {
            components.apply(raw);
        } catch (RuntimeException e) {
            refuse(offset, Messages.of(e));
            return;
        }
        applied = new Applied(offset, Instant.now(), sha256(raw), new TreeSet<>(raw.keySet()));
        refused = null;
        LOG.info("Applied dynamic worker configuration of offset {}: {}", offset, applied.keys());
    }

    private void refuse(long offset, String message) {
        refused = new Failure(offset, Instant.now(), message);
        LOG.error("Dynamic worker configuration of offset {} was refused, what was in force stays: {}", offset,
                message);
    }
}
