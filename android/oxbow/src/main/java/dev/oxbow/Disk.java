package dev.oxbow;

import java.io.EOFException;
import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;

/** What a {@link ModelStore} asks of the disk; tests put one in its place that fails. */
class Disk {
    void makeFolder(File folder) throws IOException {
        if (!folder.isDirectory() && !folder.mkdirs() && !folder.isDirectory()) {
            throw new IOException("cannot make the folder " + folder);
        }
    }

    long freeBytes(File folder) {
        return folder.getUsableSpace();
    }

    RandomAccessFile open(File file) throws IOException {
        return new RandomAccessFile(file, "rw");
    }

    /** 1 to {@code most} bytes. */
    int read(RandomAccessFile file, byte[] piece, int most) throws IOException {
        int count = file.read(piece, 0, most);
        if (count < 0) {
            throw new EOFException("a file became shorter while it was read");
        }
        return count;
    }

    void write(RandomAccessFile file, byte[] piece, int count) throws IOException {
        file.write(piece, 0, count);
    }

    /** Before the file gets its name: after a loss of power a name must not stand for nothing. */
    void sync(RandomAccessFile file) throws IOException {
        file.getFD().sync();
    }

    void rename(File from, File to) throws IOException {
        if (!from.renameTo(to)) {
            throw new IOException("cannot rename " + from + " to " + to.getName());
        }
    }

    void delete(File file) throws IOException {
        if (!file.delete() && file.exists()) {
            throw new IOException("cannot delete " + file);
        }
    }
}
