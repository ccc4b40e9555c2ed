package io.kdeclare.connect;

import java.security.KeyStore;
import java.security.KeyStoreException;
import java.security.cert.X509Certificate;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

import org.eclipse.jetty.server.Connector;
import org.eclipse.jetty.server.HttpConnectionFactory;
import org.eclipse.jetty.server.SecureRequestCustomizer;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.util.ssl.SslContextFactory;
import org.eclipse.jetty.util.ssl.X509;

/**
 * Whether the listener would still answer to the name under which it is known.
 *
 * <p>Jetty answers 400 to requests for a host that the served certificate does not name, whatever the client
 * makes of it ({@code SecureRequestCustomizer}). A certificate without the advertised host would so shut out
 * the other workers, and whoever wants to take it back.
 */
final class HostNames {
    private final Server server;
    private final Advertised advertised;

    HostNames(Server server, Advertised advertised) {
        this.server = server;
        this.advertised = advertised;
    }

    /** @throws Refusal when requests to the advertised host, answered until now, would not be any more */
    void check(SslContextFactory.Server candidate) {
        String host = advertised.host();
        if (!advertised.isHttps() || host == null || !looksAtHosts()) {
            return;
        }
        if (leaves(candidate.getKeyStore()).noneMatch(leaf -> names(leaf, host)) && answers(host)) {
            throw new Refusal(TlsKeys.KEYSTORE_LOCATION, "The certificate does not name " + host
                    + ", under which this worker is known: its listener would answer 400 to all requests"
                    + " there, other workers' and yours.");
        }
    }

    /** Of the keys: Jetty's own list leaves some out, and has certificates that belong to no key. */
    private static Stream<X509Certificate> leaves(KeyStore store) {
        try {
            List<X509Certificate> found = new ArrayList<>();
            for (String alias : Collections.list(store.aliases())) {
                if (store.isKeyEntry(alias)) {
                    found.add((X509Certificate) store.getCertificate(alias));
                }
            }
            return found.stream();
        } catch (KeyStoreException e) {
            throw new IllegalStateException("a key store that has been read", e);
        }
    }

    private boolean looksAtHosts() {
        return Arrays.stream(server.getConnectors())
                .map(HostNames::customizer)
                .flatMap(Optional::stream)
                .anyMatch(SecureRequestCustomizer::isSniHostCheck);
    }

    private boolean answers(String host) {
        return JettyServers.https(server).stream()
                .map(connector -> Handshake.served(JettyServers.tls(connector).newSSLEngine()))
                .flatMap(Optional::stream)
                .anyMatch(served -> names(served, host));
    }

    private static boolean names(X509Certificate certificate, String host) {
        return new X509("served", certificate).matches(host);
    }

    private static Optional<SecureRequestCustomizer> customizer(Connector connector) {
        return Optional.ofNullable(connector.getConnectionFactory(HttpConnectionFactory.class))
                .map(http -> http.getHttpConfiguration().getCustomizer(SecureRequestCustomizer.class));
    }
}
