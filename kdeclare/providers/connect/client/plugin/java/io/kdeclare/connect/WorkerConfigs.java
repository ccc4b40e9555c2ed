package io.kdeclare.connect;

import java.util.Map;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;
import java.util.function.Supplier;

import jakarta.servlet.ServletContext;
import jakarta.ws.rs.core.Response;

import org.apache.kafka.connect.runtime.rest.errors.ConnectRestException;

import org.eclipse.jetty.server.Server;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One worker's dynamic configuration: the store, the components and their progress. An error here does not affect
 * the worker itself; requests are then answered with 503 and the reason.
 */
final class WorkerConfigs implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(WorkerConfigs.class);
    private static final String NO_SERVER = "The worker's listeners cannot be reached in this version of Connect.";

    private final Settings settings;
    private final Placeholders placeholders;
    private final Components components;
    private final Overrides overrides;
    private final Store store;
    private final String unavailable;
    private TlsListeners listeners;
    private Advertised advertised;
    private String unattached = NO_SERVER;

    private WorkerConfigs(Settings settings, Placeholders placeholders, Store store, String unavailable) {
        this.settings = settings;
        this.placeholders = placeholders;
        this.components = settings == null ? null : new Components(settings, placeholders);
        this.overrides = settings == null ? null : new Overrides(components);
        this.store = store;
        this.unavailable = unavailable;
    }

    /** {@code loader}: a class loader that knows the worker's plug-ins. Never throws. */
    static WorkerConfigs of(Map<String, ?> configs, ClassLoader loader) {
        try {
            Settings settings = Settings.of(configs);
            if (!settings.distributed() && settings.file() == null) {
                throw new Refusal(Settings.FILE,
                        "A standalone worker needs this setting: the file that holds its overrides.");
            }
            Placeholders placeholders = Placeholders.of(settings.worker(), loader);
            Store store = settings.distributed() ? new TopicStore(settings) : new FileStore(settings.file());
            return new WorkerConfigs(settings, placeholders, store, null);
        } catch (RuntimeException | LinkageError e) {
            String reason = Messages.of(e);
            LOG.error("Dynamic worker configuration is not available: {}", reason);
            return new WorkerConfigs(null, null, null, reason);
        }
    }

    /** Start to follow the store, and return when existing overrides are in effect. */
    void start() {
        if (unavailable != null) {
            return;
        }
        attach(() -> JettyServers.started(settings.worker()));
        store.start(overrides);
        try {
            if (!store.awaitStart(settings.replay())) {
                LOG.warn("The overrides could not be read within {} ms; they are applied as soon as they can be read",
                        settings.replay().toMillis());
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** Take the server from a request, if it was not available before. */
    void attach(ServletContext context) {
        if (unavailable == null && !isAttached()) {
            attach(() -> JettyServers.of(context));
        }
    }

    Optional<Settings> settings() {
        return Optional.ofNullable(settings);
    }

    Optional<Overrides> overrides() {
        return Optional.ofNullable(overrides);
    }

    synchronized Optional<TlsListeners> listeners() {
        return Optional.ofNullable(listeners);
    }

    synchronized Optional<Advertised> advertised() {
        return Optional.ofNullable(advertised);
    }

    /** Why the configuration cannot be changed here; empty if it can. */
    synchronized Optional<String> reason() {
        if (unavailable != null) {
            return Optional.of(unavailable);
        }
        return isAttached() ? Optional.empty() : Optional.of(unattached);
    }

    /** @throws ConnectRestException 503 with the reason if the configuration cannot be changed */
    void requireAvailable() {
        reason().ifPresent(reason -> {
            throw new ConnectRestException(Response.Status.SERVICE_UNAVAILABLE, reason);
        });
    }

    /** Refuse keys that may not be overridden. @throws Refusal for the first of them */
    void check(Changes changes) {
        changes.check(settings.whitelist(), overrides.last());
    }

    /** Refuse overrides that this worker could not apply; changes nothing. */
    void validate(Changes changes) {
        Map<String, String> merged = changes.over(overrides.raw());
        if (needsValidation(changes)) {
            components.validate(merged);
        }
    }

    /**
     * Merge, validate, write, read back, apply; return all overrides. {@code changes} is called with the current
     * overrides once no other client can write anymore.
     */
    Map<String, String> update(Function<Map<String, String>, Changes> changes) {
        AtomicReference<Map<String, String>> written = new AtomicReference<>();
        try {
            store.update(current -> {
                Changes wanted = changes.apply(current);
                wanted.check(settings.whitelist(), current);
                Map<String, String> merged = wanted.over(current);
                if (needsValidation(wanted)) {
                    components.prepare(merged);
                }
                written.set(merged);
                return merged;
            });
        } finally {
            components.forget();
        }
        return written.get();
    }

    /** Not needed if overrides are only removed and no listener would apply them; others may be left after that. */
    private boolean needsValidation(Changes changes) {
        return !changes.onlyTakeAway() || listeners().filter(TlsListeners::isEmpty).isEmpty();
    }

    @Override
    public void close() {
        if (store != null) {
            store.close();
            placeholders.close();
        }
    }

    private synchronized boolean isAttached() {
        return listeners != null;
    }

    /** Use the server if it is available; with an unknown Jetty version, the worker continues without it. */
    private synchronized void attach(Supplier<Optional<Server>> found) {
        try {
            found.get().filter(server -> listeners == null).ifPresent(this::attach);
        } catch (RuntimeException | LinkageError e) {
            unattached = NO_SERVER + " " + Messages.of(e);
            LOG.warn("The worker's listeners cannot be reached: {}", Messages.of(e));
        }
    }

    private void attach(Server server) {
        Advertised where = Advertised.of(settings.worker(), server);
        HostNames names = new HostNames(server, where);
        PeerTrust trust = new PeerTrust(settings.worker(), where);
        boolean checks = settings.distributed() && settings.checkTrust();
        TlsListeners made = new TlsListeners(server, settings.worker(), new KeyStoreFiles(settings.allowed()), candidate -> {
            names.check(candidate);
            if (checks) {
                trust.check(candidate);
            }
        });
        advertised = where;
        listeners = made;
        overrides.register(made);
    }
}
