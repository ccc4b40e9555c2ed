package io.kdeclare.connect;

import java.net.URI;
import java.util.Locale;
import java.util.Map;

import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;

/** The address that a worker advertises to the others, determined as Connect does; Connect's own is not accessible. */
record Advertised(String protocol, String host, int port) {
    private static final String HTTP = "http";
    private static final String HTTPS = "https";

    static Advertised of(Map<String, String> worker, Server server) {
        String listeners = worker.getOrDefault("listeners", "").toLowerCase(Locale.ENGLISH);
        String chosen = worker.get("rest.advertised.listener");
        String otherwise = listeners.contains(HTTPS + "://") && !listeners.contains(HTTP + "://") ? HTTPS : HTTP;
        String protocol = chosen == null ? otherwise : chosen.toLowerCase(Locale.ENGLISH);
        ServerConnector connector = JettyServers.connector(server, protocol);
        return new Advertised(protocol, host(worker, server, connector), port(worker, connector));
    }

    boolean isHttps() {
        return HTTPS.equals(protocol);
    }

    /** The id by which Connect identifies the worker. */
    String workerId() {
        return host + ":" + port;
    }

    private static String host(Map<String, String> worker, Server server, ServerConnector connector) {
        String host = worker.get("rest.advertised.host.name");
        if (host == null || host.isEmpty()) {
            host = connector == null ? null : connector.getHost();
        }
        if (host == null || host.isEmpty()) {
            URI uri = server.getURI();
            host = uri == null ? null : uri.getHost();
        }
        return host;
    }

    private static int port(Map<String, String> worker, ServerConnector connector) {
        String port = worker.get("rest.advertised.port");
        if (port != null) {
            return Integer.parseInt(port.trim());
        }
        return connector == null ? -1 : connector.getLocalPort();
    }
}
