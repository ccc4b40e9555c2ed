package io.kdeclare.connect;

import java.security.cert.X509Certificate;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;

import javax.net.ssl.SSLContext;

import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.util.ssl.SslContextFactory;

/**
 * The worker's HTTPS listeners: new handshakes use the new certificate, and open connections continue.
 */
final class TlsListeners implements Component {

    /** One listener and the certificate that it serves. */
    record Listener(String name, int port, Optional<X509Certificate> certificate) { }

    private record Served(SSLContext by, Optional<X509Certificate> certificate) { }

    private record Validated(Candidate candidate, TlsMaterial material) { }

    private final List<ServerConnector> connectors;
    private final Map<String, String> own;
    private final KeyStoreFiles files;
    private final Consumer<SslContextFactory.Server> check;
    private final Map<ServerConnector, Served> served = new ConcurrentHashMap<>();
    private Validated validated;

    /**
     * {@code worker}: the configuration without overrides. {@code files}: reads key stores. {@code check}: throws a
     * Refusal about material that is valid in itself but not acceptable.
     */
    TlsListeners(
            Server server, Map<String, String> worker, KeyStoreFiles files,
            Consumer<SslContextFactory.Server> check) {
        this.connectors = JettyServers.https(server);
        this.own = TlsKeys.merged(worker, Map.of());
        this.files = files;
        this.check = check;
    }

    @Override
    public synchronized void validate(Candidate candidate) {
        if (!connectors.isEmpty()) {
            validated = new Validated(candidate, material(candidate));
        } else if (!candidate.merged().equals(own)) {
            throw new Refusal("", "This worker has no HTTPS listener to apply this to.");
        }
    }

    /** Uses exactly the material that was validated, if that was just done, because files can change in between. */
    @Override
    public synchronized void apply(Candidate candidate) {
        if (connectors.isEmpty()) {
            return;
        }
        boolean known = validated != null && validated.candidate() == candidate;
        TlsMaterial wanted = known ? validated.material() : material(candidate);
        validated = null;
        Map<ServerConnector, TlsMaterial> before = new LinkedHashMap<>();
        try {
            for (ServerConnector connector : connectors) {
                SslContextFactory.Server live = JettyServers.tls(connector);
                before.put(connector, TlsMaterial.of(live));
                wanted.into(live);
            }
        } catch (Exception e) {
            before.forEach(TlsListeners::restore);
            throw new Refusal("", "A listener could not use its new certificate, and its old one was restored ("
                    + Messages.kinds(e) + ").");
        }
    }

    /** Whether there is no listener. */
    boolean isEmpty() {
        return connectors.isEmpty();
    }

    /** The certificates that are served now, determined by handshakes. */
    List<Listener> listeners() {
        return connectors.stream()
                .map(connector -> new Listener(
                        connector.getName().split("_", 2)[0], connector.getLocalPort(), certificate(connector)))
                .toList();
    }

    private Optional<X509Certificate> certificate(ServerConnector connector) {
        SslContextFactory.Server live = JettyServers.tls(connector);
        SSLContext context = live.getSslContext();
        Served known = served.get(connector);
        if (known == null || known.by() != context) {
            known = new Served(context, Handshake.served(live.newSSLEngine()));
            served.put(connector, known);
        }
        return known.certificate();
    }

    private TlsMaterial material(Candidate candidate) {
        SslContextFactory.Server made = TlsMaterial.factory(candidate, files);
        check.accept(made);
        return TlsMaterial.of(made);
    }

    private static void restore(ServerConnector connector, TlsMaterial material) {
        try {
            material.into(JettyServers.tls(connector));
        } catch (Exception e) {
            throw new IllegalStateException("a listener's previous state could not be restored: " + Messages.kinds(e));
        }
    }
}
