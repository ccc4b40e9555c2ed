package io.kdeclare.connect;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.UnaryOperator;

import com.fasterxml.jackson.databind.ObjectMapper;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The overrides of a standalone worker, which has no config topic: a file with a flat JSON object. The file is
 * checked twice a second. Writing or touching it makes the worker load everything again.
 */
final class FileStore implements Store {
    private static final Logger LOG = LoggerFactory.getLogger(FileStore.class);
    private static final long POLL_MS = 500;
    private static final ObjectMapper JSON = new ObjectMapper();

    private final Path path;
    private final ScheduledExecutorService watching = Executors.newSingleThreadScheduledExecutor(task -> {
        Thread thread = new Thread(task, "kdeclare-worker-config");
        thread.setDaemon(true);
        return thread;
    });
    private Listener listener;
    private FileTime told;
    private long version;

    FileStore(Path path) {
        this.path = path.toAbsolutePath();
    }

    @Override
    public void start(Listener toTell) {
        listener = toTell;
        look();
        watching.scheduleWithFixedDelay(this::look, POLL_MS, POLL_MS, TimeUnit.MILLISECONDS);
    }

    @Override
    public boolean awaitStart(Duration limit) {
        return true;
    }

    @Override
    public synchronized void update(UnaryOperator<Map<String, String>> change) {
        try {
            Map<String, String> wanted = change.apply(Files.exists(path) ? read() : Map.of());
            replace(JSON.writerWithDefaultPrettyPrinter().writeValueAsBytes(new TreeMap<>(wanted)));
        } catch (IOException e) {
            throw new StoreException("Nothing was written to " + path + ": " + reason(e));
        }
        told = null;
        look();
    }

    @Override
    public void close() {
        watching.shutdownNow();
    }

    private synchronized void look() {
        FileTime changed;
        Map<String, String> raw;
        try {
            changed = Files.getLastModifiedTime(path);
            if (changed.equals(told)) {
                return;
            }
            raw = read();
        } catch (NoSuchFileException e) {
            gone();
            return;
        } catch (IOException e) {
            unreadable(e);
            return;
        }
        told = changed;
        listener.updated(++version, raw);
    }

    private void gone() {
        if (version > 0 && told != null) {
            told = null;
            listener.updated(++version, Map.of());
        }
    }

    private void unreadable(IOException failure) {
        try {
            told = Files.getLastModifiedTime(path);
        } catch (IOException e) {
            LOG.debug("{} was removed", path, e);
        }
        listener.unreadable(++version, path + ": " + reason(failure));
    }

    private Map<String, String> read() throws IOException {
        return Envelope.strings(Envelope.tree(Files.readAllBytes(path)));
    }

    /** Atomically, so that a partially written file is never read, even after a crash. */
    private void replace(byte[] content) throws IOException {
        Path aside = path.resolveSibling(path.getFileName() + ".new");
        Files.deleteIfExists(aside);
        if (path.getFileSystem().supportedFileAttributeViews().contains("posix")) {
            Files.createFile(aside, PosixFilePermissions.asFileAttribute(
                    PosixFilePermissions.fromString("rw-------")));
        } else {
            Files.createFile(aside);
        }
        Files.write(aside, content);
        try (FileChannel channel = FileChannel.open(aside, StandardOpenOption.WRITE)) {
            channel.force(true);
        }
        Files.move(aside, path, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
    }

    private static String reason(IOException failure) {
        return failure instanceof NoSuchFileException ? "there is no such file or folder" : failure.getMessage();
    }
}
