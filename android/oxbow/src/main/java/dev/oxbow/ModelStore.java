package dev.oxbow;

import androidx.annotation.WorkerThread;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.RandomAccessFile;
import java.util.Arrays;
import java.util.Objects;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Models that come beside the app, by a download or an asset pack: a folder with one file of each name. A file has its name
 * only when all of it is there and its checksum is right, whenever the app is killed; what came so far is kept, and fetching goes
 * on from there. Older versions go when a newer one is there; sessions that still use one keep it.
 *
 * <p>Any threads and processes may use one folder: one fetches at a time.
 */
public final class ModelStore {
    /** What an app wants to have. */
    public static final class Wanted {
        final String name;
        final int version;
        final long bytes;
        final byte[] sha256;

        /**
         * @param name of 1 to 64 small letters, digits and "_"
         * @param version the newer, the larger; 0 or more
         * @param bytes how long the file is
         * @param sha256 the checksum of all bytes, as 64 hexadecimal digits
         */
        public Wanted(String name, int version, long bytes, String sha256) {
            if (!NAME.matcher(name).matches()) {
                throw OxbowException.invalid("the name '" + name + "': expected 1 to 64 small letters, digits and _");
            }
            if (version < 0 || bytes < 1) {
                throw OxbowException.invalid("version " + version + " of " + bytes + " bytes");
            }
            this.name = name;
            this.version = version;
            this.bytes = bytes;
            this.sha256 = Checksum.parse(sha256);
        }

        private String file() {
            return name + "-" + version + SUFFIX;
        }
    }

    /** Where the bytes come from. */
    public interface Source {
        /**
         * Begins to read.
         *
         * @param from the byte to begin with: 0, or, when an earlier try was cut off, where it ended
         * @return the bytes from there on
         * @throws IOException when it cannot be read; {@link ModelStore#fetch} then throws it
         */
        InputStream open(long from) throws IOException;
    }

    /** Hears how far it is, on the thread that fetches. */
    public interface Progress {
        /**
         * Called after each piece.
         *
         * @param done bytes that are there
         * @param all bytes of the whole file
         * @return false: no more is wanted now
         */
        boolean onBytes(long done, long all);
    }

    private static final Pattern NAME = Pattern.compile("[a-z0-9_]{1,64}");
    private static final Pattern STORED = Pattern.compile("([a-z0-9_]{1,64})-([0-9]{1,10})\\.oxb(\\.part)?");
    private static final String SUFFIX = ".oxb";
    private static final String PART = ".part";
    private static final int PIECE = 1 << 16;
    /** Left free: a phone without any space misbehaves. */
    private static final long SPARE_BYTES = 16L << 20;

    private final File folder;
    private final Disk disk;

    /**
     * A store in a folder, which is made when something is fetched.
     *
     * @param folder nothing else should be in it
     */
    public ModelStore(File folder) {
        this(folder, new Disk());
    }

    ModelStore(File folder, Disk disk) {
        this.folder = Objects.requireNonNull(folder);
        this.disk = disk;
    }

    /**
     * The newest version that is there.
     *
     * @param name of the model
     * @return its file; null: none is there
     */
    public @Nullable File find(String name) {
        File newest = null;
        long version = -1;
        for (File file : files()) {
            Matcher stored = STORED.matcher(file.getName());
            if (stored.matches() && stored.group(3) == null && stored.group(1).equals(name)) {
                long found = Long.parseLong(stored.group(2));
                newest = found > version ? file : newest;
                version = Math.max(found, version);
            }
        }
        return newest;
    }

    /** {@return bytes that the store takes, with what is half fetched} */
    public long getBytes() {
        return Arrays.stream(files()).mapToLong(File::length).sum();
    }

    /**
     * The file of a version, fetched unless it is there. What fails throws and may be called again: it goes on where it
     * ended, but for a wrong checksum, after which it begins anew.
     *
     * @param wanted what it must be
     * @param source where it comes from
     * @param progress hears how far it is
     * @return the whole file, checked
     * @throws IOException when the source ends early or fails, the disk is full or fails, or the checksum is wrong
     * @throws OxbowException {@link OxbowException#CANCELLED} when the progress wanted no more
     */
    @WorkerThread
    public File fetch(Wanted wanted, Source source, Progress progress) throws IOException {
        File file = new File(folder, wanted.file());
        synchronized (ModelStore.class) {
            disk.makeFolder(folder);
            try (RandomAccessFile guard = new RandomAccessFile(new File(folder, "lock"), "rw")) {
                // Against other processes, until the file is closed.
                guard.getChannel().lock();
                if (!file.exists()) {
                    fetchPart(wanted, source, progress, new File(folder, wanted.file() + PART), file);
                }
                removeOthers(wanted);
            }
        }
        return file;
    }

    /**
     * Deletes all versions of a model, and what is half fetched.
     *
     * @param name of the model
     * @throws IOException when one of them cannot be deleted
     */
    public void remove(String name) throws IOException {
        synchronized (ModelStore.class) {
            for (File file : files()) {
                Matcher stored = STORED.matcher(file.getName());
                if (stored.matches() && stored.group(1).equals(name)) {
                    disk.delete(file);
                }
            }
        }
    }

    private File[] files() {
        File[] all = folder.listFiles();
        return all == null ? new File[0] : all;
    }

    private void fetchPart(Wanted wanted, Source source, Progress progress, File part, File file) throws IOException {
        Checksum sum = new Checksum();
        long done = part.length();
        if (done > wanted.bytes) {
            disk.delete(part);
            done = 0;
        }
        long missing = wanted.bytes - done;
        long free = disk.freeBytes(folder);
        if (free < missing + SPARE_BYTES) {
            throw new IOException(
                    folder + " has " + free + " bytes free; the model needs " + missing + " more, and " + SPARE_BYTES
                            + " stay free");
        }
        byte[] piece = new byte[PIECE];
        try (RandomAccessFile out = disk.open(part)) {
            // What an earlier try wrote is part of the sum.
            for (long read = 0; read < done; ) {
                int count = disk.read(out, piece, (int) Math.min(PIECE, done - read));
                sum.add(piece, count);
                read += count;
            }
            if (done < wanted.bytes) {
                copy(wanted, source, progress, out, done, sum, piece);
            }
            disk.sync(out);
        }
        if (!sum.is(wanted.sha256)) {
            disk.delete(part);
            throw new IOException("the checksum of " + wanted.name + " is wrong: what came is not what was wanted; fetch it anew");
        }
        disk.rename(part, file);
    }

    private void copy(
            Wanted wanted,
            Source source,
            Progress progress,
            RandomAccessFile out,
            long from,
            Checksum sum,
            byte[] piece)
            throws IOException {
        long done = from;
        try (InputStream in = source.open(from)) {
            while (done < wanted.bytes) {
                int count = in.read(piece, 0, (int) Math.min(PIECE, wanted.bytes - done));
                if (count < 0) {
                    throw new IOException(wanted.name + " ended after " + done + " of " + wanted.bytes + " bytes");
                }
                disk.write(out, piece, count);
                sum.add(piece, count);
                done += count;
                if (!progress.onBytes(done, wanted.bytes) && done < wanted.bytes) {
                    throw OxbowException.of(
                            OxbowException.CANCELLED, wanted.name + " was stopped after " + done + " bytes");
                }
            }
        }
    }

    /** Once the newest is there. Whoever has an older one mapped keeps its pages. */
    private void removeOthers(Wanted wanted) throws IOException {
        for (File file : files()) {
            Matcher stored = STORED.matcher(file.getName());
            boolean same = stored.matches() && stored.group(1).equals(wanted.name);
            if (same && !file.getName().equals(wanted.file()) && Long.parseLong(stored.group(2)) <= wanted.version) {
                disk.delete(file);
            }
        }
    }
}
