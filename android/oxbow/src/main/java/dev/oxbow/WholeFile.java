package dev.oxbow;

import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;

/** Small files that are there whole or not at all. Of java.io alone: API level 24 has no java.nio.file. */
final class WholeFile {
    private WholeFile() {}

    /** What lies between position and limit, under another name first. A file of this name is replaced. */
    static void write(File file, ByteBuffer bytes) throws IOException {
        File part = new File(file.getPath() + ".part");
        try (FileOutputStream out = new FileOutputStream(part)) {
            ByteBuffer rest = bytes.duplicate();
            while (rest.hasRemaining()) {
                out.getChannel().write(rest);
            }
            out.getFD().sync();
        } catch (IOException e) {
            // Half of it helps nobody; the file of before is still there.
            part.delete();
            throw e;
        }
        if (!part.renameTo(file)) {
            part.delete();
            throw new IOException("cannot write " + file);
        }
    }

    /** All of it, in a direct buffer. */
    static ByteBuffer read(File file) throws IOException {
        try (RandomAccessFile in = new RandomAccessFile(file, "r")) {
            long length = in.length();
            if (length > Integer.MAX_VALUE - DirectBuffers.ALIGNMENT) {
                throw new IOException(file + " has " + length + " bytes, more than a buffer");
            }
            ByteBuffer bytes = DirectBuffers.allocate((int) length);
            while (bytes.hasRemaining()) {
                if (in.getChannel().read(bytes) < 0) {
                    throw new IOException(file + " ended after " + bytes.position() + " of " + length + " bytes");
                }
            }
            bytes.flip();
            return bytes;
        }
    }
}
