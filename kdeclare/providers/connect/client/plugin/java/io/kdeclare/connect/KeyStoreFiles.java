package io.kdeclare.connect;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.List;

/**
 * Reads the files of key stores: regular files up to a size limit, and only below the allowed folders if the
 * worker's configuration names some. A pipe or a device would block the worker or fill its memory.
 */
final class KeyStoreFiles {
    static final int MAX_BYTES = 16 * 1024 * 1024;

    private final List<Path> allowed;

    /** {@code allowed}: absolute folders; if empty, files can be anywhere. */
    KeyStoreFiles(List<Path> allowed) {
        this.allowed = List.copyOf(allowed);
    }

    /** The content of the file at {@code location}, the value of {@code key}. @throws Refusal if it is unsuitable */
    byte[] read(Candidate candidate, String key, String location) {
        String name = candidate.describe(key);
        Path path;
        try {
            path = Path.of(location);
        } catch (InvalidPathException e) {
            throw new Refusal(key, "This is not a path: " + name + ".");
        }
        if (candidate.isOverridden(key) && !isAllowed(path)) {
            throw new Refusal(key, "Not below a folder that " + Settings.ALLOWED_PATHS + " allows: " + name + ".");
        }
        if (!Files.exists(path)) {
            throw new Refusal(key, candidate.isOverridden(key) ? "There is no file " + name + " on this worker."
                    : "There is nothing at the path that this worker's own configuration names.");
        }
        if (!Files.isRegularFile(path)) {
            throw new Refusal(key, "This is not a regular file: " + name + ".");
        }
        try (InputStream content = Files.newInputStream(path)) {
            byte[] read = content.readNBytes(MAX_BYTES + 1);
            if (read.length > MAX_BYTES) {
                throw new Refusal(key, "Larger than " + MAX_BYTES + " bytes: " + name + ".");
            }
            return read;
        } catch (AccessDeniedException e) {
            throw new Refusal(key, "The worker's user may not read " + name + ".");
        } catch (IOException e) {
            throw new Refusal(key, "Cannot be read (" + Messages.kinds(e) + "): " + name + ".");
        }
    }

    /** Resolves symbolic links, which must not lead outside. A path that does not exist is checked by its name. */
    private boolean isAllowed(Path path) {
        return allowed.isEmpty() || allowed.stream().anyMatch(folder -> isBelow(path, folder));
    }

    private static boolean isBelow(Path path, Path folder) {
        try {
            return path.toRealPath().startsWith(folder.toRealPath());
        } catch (IOException e) {
            return !Files.exists(path) && path.toAbsolutePath().normalize().startsWith(folder);
        }
    }
}
