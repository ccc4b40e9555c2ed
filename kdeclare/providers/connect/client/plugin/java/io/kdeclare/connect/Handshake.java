package io.kdeclare.connect;

import java.nio.ByteBuffer;
import java.security.GeneralSecurityException;
import java.security.cert.X509Certificate;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;

import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLEngineResult;
import javax.net.ssl.SSLEngineResult.HandshakeStatus;
import javax.net.ssl.SSLException;
import javax.net.ssl.TrustManager;
import javax.net.ssl.X509ExtendedTrustManager;

/** A TLS handshake in memory, without a socket: it predicts the result of a connection. */
final class Handshake {

    /** One side rejected the other. */
    static final class Rejected extends Exception {
        private static final long serialVersionUID = 1L;
        private final boolean byClient;

        Rejected(boolean byClient, SSLException cause) {
            super(cause.getMessage(), cause);
            this.byClient = byClient;
        }

        boolean byClient() {
            return byClient;
        }
    }

    private static final int MAX_STEPS = 1000;

    private final Side client;
    private final Side server;

    private Handshake(SSLEngine client, SSLEngine server) {
        client.setUseClientMode(true);
        server.setUseClientMode(false);
        // Room for a flight of several records, because a long chain does not fit into one.
        int room = 8 * client.getSession().getPacketBufferSize();
        ByteBuffer toServer = ByteBuffer.allocate(room);
        ByteBuffer toClient = ByteBuffer.allocate(room);
        this.client = new Side(client, toClient, toServer);
        this.server = new Side(server, toServer, toClient);
    }

    /** Perform the handshake. @throws Rejected if it fails */
    static void between(SSLEngine client, SSLEngine server) throws Rejected {
        new Handshake(client, server).run();
    }

    /** The certificate that a listener currently serves to a client that names no host. */
    static Optional<X509Certificate> served(SSLEngine server) {
        AtomicReference<X509Certificate> seen = new AtomicReference<>();
        try {
            SSLContext curious = SSLContext.getInstance("TLS");
            curious.init(null, new TrustManager[] {new Witness(seen)}, null);
            between(curious.createSSLEngine(), server);
        } catch (Rejected e) {
            // This happens if clients need a certificate; the listener has already sent its own by then.
            return Optional.ofNullable(seen.get());
        } catch (GeneralSecurityException e) {
            throw new IllegalStateException("every Java runtime supports TLS", e);
        }
        return Optional.ofNullable(seen.get());
    }

    private void run() throws Rejected {
        for (int step = 0; step < MAX_STEPS; step++) {
            boolean moved = advance(client, true);
            moved |= advance(server, false);
            if (!moved) {
                if (client.isDone() && server.isDone()) {
                    return;
                }
                break;
            }
        }
        throw new Rejected(true, new SSLException("the handshake did not finish"));
    }

    private static boolean advance(Side side, boolean isClient) throws Rejected {
        try {
            return side.advance();
        } catch (SSLException e) {
            throw new Rejected(isClient, e);
        }
    }

    private static final class Side {
        private static final ByteBuffer NOTHING = ByteBuffer.allocate(0);

        private final SSLEngine engine;
        private final ByteBuffer in;
        private final ByteBuffer out;
        private final ByteBuffer data;
        private boolean begun;

        Side(SSLEngine engine, ByteBuffer in, ByteBuffer out) {
            this.engine = engine;
            this.in = in;
            this.out = out;
            this.data = ByteBuffer.allocate(engine.getSession().getApplicationBufferSize());
        }

        boolean isDone() {
            HandshakeStatus status = engine.getHandshakeStatus();
            return begun && in.position() == 0
                    && (status == HandshakeStatus.NOT_HANDSHAKING || status == HandshakeStatus.FINISHED);
        }

        /** One step; returns whether it made progress. */
        boolean advance() throws SSLException {
            if (!begun) {
                engine.beginHandshake();
                begun = true;
            }
            switch (engine.getHandshakeStatus()) {
                case NEED_TASK -> {
                    Runnable task = engine.getDelegatedTask();
                    while (task != null) {
                        task.run();
                        task = engine.getDelegatedTask();
                    }
                    return true;
                }
                case NEED_WRAP -> {
                    return engine.wrap(NOTHING, out).bytesProduced() > 0;
                }
                default -> {
                    return in.position() > 0 && unwrap();
                }
            }
        }

        private boolean unwrap() throws SSLException {
            in.flip();
            try {
                SSLEngineResult result = engine.unwrap(in, data);
                data.clear();
                return result.bytesConsumed() > 0;
            } finally {
                in.compact();
            }
        }
    }

    /** Trusts every certificate, for one handshake that carries no data, and remembers the leaf. */
    private static final class Witness extends X509ExtendedTrustManager {
        private final AtomicReference<X509Certificate> seen;

        Witness(AtomicReference<X509Certificate> seen) {
            this.seen = seen;
        }

        @Override
        public void checkServerTrusted(X509Certificate[] chain, String authType, SSLEngine engine) {
            seen.set(chain[0]);
        }

        @Override
        public void checkServerTrusted(X509Certificate[] chain, String authType, java.net.Socket socket) {
            seen.set(chain[0]);
        }

        @Override
        public void checkServerTrusted(X509Certificate[] chain, String authType) {
            seen.set(chain[0]);
        }

        @Override
        public void checkClientTrusted(X509Certificate[] chain, String authType, SSLEngine engine) {
            throw new IllegalStateException("this side is a client");
        }

        @Override
        public void checkClientTrusted(X509Certificate[] chain, String authType, java.net.Socket socket) {
            throw new IllegalStateException("this side is a client");
        }

        @Override
        public void checkClientTrusted(X509Certificate[] chain, String authType) {
            throw new IllegalStateException("this side is a client");
        }

        @Override
        public X509Certificate[] getAcceptedIssuers() {
            return new X509Certificate[0];
        }
    }
}
