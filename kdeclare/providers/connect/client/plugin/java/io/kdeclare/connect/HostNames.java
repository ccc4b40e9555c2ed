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
 * Whether the listener would still accept requests for the name by which it is known.
 *
 * <p>Jetty responds with 400 to requests for a host that the served certificate does not name, even if the client
 * accepts the certificate ({@code SecureRequestCustomizer}). A certificate without the advertised host would
 * therefore lock out the other workers, and any client that tries to undo the change.
 */
final class HostNames {
    private final Server server;
    private final Advertised advertised;

    HostNames(Server server, Advertised advertised) {
        this.server = server;
        this.advertised = advertised;
    }

    /** @throws Refusal if requests to the advertised host, which are accepted now, would be rejected */
    void check(SslContextFactory.Server candidate) {
        String host = advertised.host();
        if (!advertised.isHttps() || host == null || !looksAtHosts()) {
            return;
        }
        if (leaves(candidate.getKeyStore()).noneMatch(leaf -> names(leaf, host)) && answers(host)) {
            throw new Refusal(TlsKeys.KEYSTORE_LOCATION, "The certificate does not name " + host
                    + ", by which this worker is known. Its listener would respond with 400 to all requests"
                    + " for this name, from other workers and from clients.");
        }
    }

    /** The certificates of keys. Jetty's own list lacks some, and has certificates that belong to no key. */
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
            throw new IllegalStateException("the key store was already read successfully", e);
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
