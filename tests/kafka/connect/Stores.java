package kdeclare.test;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.MessageDigest;
import java.security.cert.Certificate;
import java.util.Base64;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;

/** What keytool does not do with key stores, or only one JVM a step. */
public final class Stores {
    private static final Base64.Encoder LINES = Base64.getMimeEncoder(64, new byte[] {'\n'});
    private static final String ISSUER = "ca";

    private final char[] password;

    private Stores(String password) {
        this.password = password.toCharArray();
    }

    /**
     * PASSWORD FOLDER NAME…: takes the issuer's key out of each NAME.p12 and prints the SHA-256 of its
     * certificate; writes the first one's key and chain to NAME.pem, mixed.p12, which has the first one's
     * key under the second one's certificate, odd.jks, which is the second one under two other passwords, and
     * fast.p12 and fast-trust.p12, which are the second one and trust.p12 without the work that opening takes.
     */
    public static void main(String[] arguments) throws IOException, GeneralSecurityException {
        Stores stores = new Stores(arguments[0]);
        Path folder = Path.of(arguments[1]);
        for (int i = 2; i < arguments.length; i++) {
            System.out.println(stores.finish(folder.resolve(arguments[i] + ".p12")));
        }
        Path first = folder.resolve(arguments[2] + ".p12");
        Files.writeString(folder.resolve(arguments[2] + ".pem"), stores.pem(first));
        Path second = folder.resolve(arguments[3] + ".p12");
        stores.mix(first, second, folder.resolve("mixed.p12"));
        stores.relock(second, folder.resolve("odd.jks"));
        for (String count : List.of("certPbeIterationCount", "keyPbeIterationCount", "macIterationCount")) {
            System.setProperty("keystore.pkcs12." + count, "1");
        }
        stores.copy(second, folder.resolve("fast.p12"));
        stores.copy(folder.resolve("trust.p12"), folder.resolve("fast-trust.p12"));
    }

    private String finish(Path path) throws IOException, GeneralSecurityException {
        KeyStore store = open(path);
        if (store.containsAlias(ISSUER)) {
            store.deleteEntry(ISSUER);
            save(store, path);
        }
        byte[] leaf = store.getCertificate(alias(store)).getEncoded();
        return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(leaf));
    }

    private String pem(Path path) throws IOException, GeneralSecurityException {
        KeyStore store = open(path);
        StringBuilder pem = new StringBuilder(
                block("PRIVATE KEY", store.getKey(alias(store), password).getEncoded()));
        for (Certificate one : store.getCertificateChain(alias(store))) {
            pem.append(block("CERTIFICATE", one.getEncoded()));
        }
        return pem.toString();
    }

    private void mix(Path keys, Path certificates, Path to) throws IOException, GeneralSecurityException {
        KeyStore from = open(keys);
        KeyStore other = open(certificates);
        KeyStore mixed = KeyStore.getInstance("PKCS12");
        mixed.load(null, null);
        mixed.setKeyEntry("mixed", from.getKey(alias(from), password), password,
                other.getCertificateChain(alias(other)));
        save(mixed, to);
    }

    private void copy(Path from, Path to) throws IOException, GeneralSecurityException {
        KeyStore store = open(from);
        KeyStore made = KeyStore.getInstance("PKCS12");
        made.load(null, null);
        KeyStore.ProtectionParameter protection = new KeyStore.PasswordProtection(password);
        for (String alias : Collections.list(store.aliases())) {
            boolean isKey = store.isKeyEntry(alias);
            made.setEntry(alias, store.getEntry(alias, isKey ? protection : null), isKey ? protection : null);
        }
        save(made, to);
    }

    private void relock(Path from, Path to) throws IOException, GeneralSecurityException {
        KeyStore store = open(from);
        KeyStore odd = KeyStore.getInstance("JKS");
        odd.load(null, null);
        odd.setKeyEntry("odd", store.getKey(alias(store), password), "of-the-key".toCharArray(),
                store.getCertificateChain(alias(store)));
        try (OutputStream out = Files.newOutputStream(to)) {
            odd.store(out, "of-the-store".toCharArray());
        }
    }

    private KeyStore open(Path path) throws IOException, GeneralSecurityException {
        KeyStore store = KeyStore.getInstance("PKCS12");
        try (InputStream in = Files.newInputStream(path)) {
            store.load(in, password);
        }
        return store;
    }

    private void save(KeyStore store, Path path) throws IOException, GeneralSecurityException {
        try (OutputStream out = Files.newOutputStream(path)) {
            store.store(out, password);
        }
    }

    private static String alias(KeyStore store) throws GeneralSecurityException {
        return store.aliases().nextElement();
    }

    private static String block(String what, byte[] content) {
        return "-----BEGIN " + what + "-----\n" + LINES.encodeToString(content) + "\n-----END " + what + "-----\n";
    }
}
