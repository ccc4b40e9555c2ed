package io.kdeclare.connect;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;

import jakarta.servlet.ServletContext;

import org.eclipse.jetty.ee10.servlet.ServletContextHandler;
import org.eclipse.jetty.server.Connector;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.server.SslConnectionFactory;
import org.eclipse.jetty.util.ssl.SslContextFactory;
import org.eclipse.jetty.util.thread.ShutdownThread;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Finds the worker's Jetty server, to which Connect gives no access. */
final class JettyServers {
    private static final Logger LOG = LoggerFactory.getLogger(JettyServers.class);
    // Connect's name for the connectors of admin.listeners, which have their own configuration prefix.
    private static final String ADMIN = "Admin";

    private JettyServers() { }

    /**
     * The started server with this worker's listeners, before its first request.
     *
     * <p>Connect registers it to be stopped when the JVM ends, so it is in the private list of Jetty's shutdown
     * thread. If another Jetty version has no such list, the first request provides the server: {@link #of}.
     */
    static Optional<Server> started(Map<String, String> worker) {
        List<Server> found = new ArrayList<>();
        for (Object one : registered()) {
            if (one instanceof Server server && server.isStarted() && names(server).equals(names(worker))) {
                found.add(server);
            }
        }
        return found.size() == 1 ? Optional.of(found.get(0)) : Optional.empty();
    }

    /** The server that received a request. */
    static Optional<Server> of(ServletContext context) {
        try {
            ServletContextHandler handler = ServletContextHandler.getServletContextHandler(context);
            return Optional.ofNullable(handler == null ? null : handler.getServer());
        } catch (LinkageError e) {
            LOG.warn("This version of Connect has a Jetty version that this plug-in does not support", e);
            return Optional.empty();
        }
    }

    /** The regular HTTPS connectors. */
    static List<ServerConnector> https(Server server) {
        return Arrays.stream(server.getConnectors())
                .filter(connector -> !ADMIN.equals(connector.getName()))
                .filter(connector -> connector.getConnectionFactory(SslConnectionFactory.class) != null)
                .map(ServerConnector.class::cast)
                .toList();
    }

    /** The TLS settings of a connector. */
    static SslContextFactory.Server tls(ServerConnector connector) {
        return connector.getConnectionFactory(SslConnectionFactory.class).getSslContextFactory();
    }

    /** The first regular connector of a protocol; Connect names them {@code PROTOCOL_HOSTPORT}. */
    static ServerConnector connector(Server server, String protocol) {
        for (Connector connector : server.getConnectors()) {
            String name = connector.getName();
            if (name != null && name.startsWith(protocol + "_")) {
                return (ServerConnector) connector;
            }
        }
        return null;
    }

    private static Collection<?> registered() {
        try {
            Field list = ShutdownThread.class.getDeclaredField("_lifeCycles");
            list.setAccessible(true);
            return List.copyOf((Collection<?>) list.get(ShutdownThread.getInstance()));
        } catch (ReflectiveOperationException | RuntimeException | LinkageError e) {
            LOG.info("This Jetty does not list its servers; the first request will provide the server.", e);
            return List.of();
        }
    }

    private static Set<String> names(Server server) {
        Set<String> names = new TreeSet<>();
        for (Connector connector : server.getConnectors()) {
            if (connector.getName() != null && !ADMIN.equals(connector.getName())) {
                names.add(connector.getName());
            }
        }
        return names;
    }

    private static Set<String> names(Map<String, String> worker) {
        Set<String> names = new TreeSet<>();
        for (String listener : worker.getOrDefault("listeners", "http://:8083").split(",")) {
            int end = listener.indexOf("://");
            int colon = listener.lastIndexOf(':');
            if (end < 0 || colon <= end) {
                continue;
            }
            String host = listener.substring(end + 3, colon).replaceAll("[\\[\\]]", "");
            String protocol = listener.substring(0, end).trim().toLowerCase(Locale.ENGLISH);
            names.add(protocol + "_" + host + listener.substring(colon + 1).trim());
        }
        return names;
    }
}
