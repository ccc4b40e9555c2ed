package io.kdeclare.connect;

import java.util.Map;

import org.apache.kafka.connect.runtime.rest.util.SSLUtils;

import org.eclipse.jetty.util.ssl.SslContextFactory;

/**
 * Whether the other workers would still talk to this one.
 *
 * <p>Workers forward requests with a client that knows the static configuration only. A certificate that it
 * does not accept, or a truststore that does not accept it, would end forwarding; so the connection is
 * rehearsed, with the new listener on one side and that client on the other.
 */
final class PeerTrust {
    private final Map<String, String> worker;
    private final Advertised advertised;

    PeerTrust(Map<String, String> worker, Advertised advertised) {
        this.worker = worker;
        this.advertised = advertised;
    }

    /** @throws Refusal when another worker with the same static configuration could not connect */
    void check(SslContextFactory.Server candidate) {
        if (!advertised.isHttps()) {
            return;
        }
        SslContextFactory.Client peer = SSLUtils.createClientSideSslContextFactory(TlsMaterial.parsed(worker));
        try {
            peer.start();
        } catch (Exception e) {
            throw new Refusal("", "The worker's own configuration gives no client to check this with: "
                    + e.getMessage());
        }
        try {
            Handshake.between(
                    peer.newSSLEngine(advertised.host(), advertised.port()), candidate.newSSLEngine());
        } catch (Handshake.Rejected e) {
            throw e.byClient()
                    ? new Refusal(TlsKeys.KEYSTORE_LOCATION, "The other workers would not accept this certificate"
                            + " and could not forward requests to this one (" + e.getMessage()
                            + "). What they trust is in their own files: add the new authority there first.")
                    : new Refusal(TlsKeys.TRUSTSTORE_LOCATION, "The listener would not accept the certificates"
                            + " that the other workers forward requests with (" + e.getMessage() + ").");
        }
    }
}
