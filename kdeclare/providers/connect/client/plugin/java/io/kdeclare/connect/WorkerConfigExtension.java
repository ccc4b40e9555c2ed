package io.kdeclare.connect;

import java.util.Map;

import jakarta.ws.rs.core.Configurable;

import org.apache.kafka.connect.rest.ConnectRestExtension;
import org.apache.kafka.connect.rest.ConnectRestExtensionContext;

import org.glassfish.jersey.internal.inject.AbstractBinder;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Dynamic worker configuration (the draft KIP-1185) for stock Connect workers. Name this class in
 * {@code rest.extension.classes}.
 *
 * <p>Connect registers extensions only on its regular listener, so the endpoints are there even if
 * {@code admin.listeners} is set.
 */
public final class WorkerConfigExtension implements ConnectRestExtension {
    private static final Logger LOG = LoggerFactory.getLogger(WorkerConfigExtension.class);

    private Map<String, ?> worker = Map.of();
    private WorkerConfigs configs;

    @Override
    public void configure(Map<String, ?> configuration) {
        worker = configuration;
    }

    /** Returns when existing overrides are in effect; no request is served until then. */
    @Override
    public void register(ConnectRestExtensionContext context) {
        // The context class loader of the starting thread knows all plug-ins; this class's own loader knows one.
        ClassLoader plugins = Thread.currentThread().getContextClassLoader();
        WorkerConfigs shared = WorkerConfigs.of(worker, plugins == null ? getClass().getClassLoader() : plugins);
        configs = shared;
        Configurable<?> resources = context.configurable();
        resources.register(new AbstractBinder() {
            @Override
            protected void configure() {
                bind(shared).to(WorkerConfigs.class);
            }
        });
        resources.register(WorkerConfigResource.class);
        Access access = Access.of(worker);
        if (access.open()) {
            LOG.warn("{}=true: any client of this worker's listener can change its configuration", Access.OPEN);
        } else if (!access.denial().isEmpty()) {
            LOG.warn("Dynamic worker configuration: {}", access.denial());
        }
        resources.register(new AdminsFilter(access));
        shared.start();
    }

    @Override
    public void close() {
        if (configs != null) {
            configs.close();
        }
    }

    @Override
    public String version() {
        return pluginVersion();
    }

    /** The version in the jar's manifest. */
    static String pluginVersion() {
        String version = WorkerConfigExtension.class.getPackage().getImplementationVersion();
        return version == null ? "unknown" : version;
    }
}
