package dev.oxbow;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** Buffers that native code reads and writes in place. */
public final class DirectBuffers {
    /** What the bytes of a model in memory must be aligned to. */
    static final int ALIGNMENT = 64;

    private DirectBuffers() {}

    /**
     * A direct buffer that begins at an address aligned to 64, as {@link Model#open(ByteBuffer)} wants.
     *
     * @param bytes how many it has
     * @return all zeros, in native order
     */
    public static ByteBuffer allocate(int bytes) {
        if (bytes < 0 || bytes > Integer.MAX_VALUE - ALIGNMENT) {
            throw OxbowException.invalid("a buffer of " + bytes + " bytes");
        }
        Oxbow.load();
        ByteBuffer whole = ByteBuffer.allocateDirect(bytes + ALIGNMENT);
        int skipped = bytesToAlignment(whole);
        whole.position(skipped);
        whole.limit(skipped + bytes);
        return whole.slice().order(ByteOrder.nativeOrder());
    }

    /** A buffer that native code will read. */
    static void checkReadable(ByteBuffer buffer, String what) {
        if (!buffer.isDirect()) {
            throw OxbowException.invalid(what + " is a heap buffer; expected a direct one, as of ByteBuffer.allocateDirect");
        }
    }

    /** A buffer that native code will write. */
    static void checkWritable(ByteBuffer buffer, String what) {
        checkReadable(buffer, what);
        if (buffer.isReadOnly()) {
            throw OxbowException.invalid(what + " is read-only");
        }
    }

    /** A buffer for {@code count} floats that native code will write. */
    static void checkFloats(ByteBuffer buffer, long count, String what) {
        checkWritable(buffer, what);
        checkOrder(buffer, what);
        checkRoom(buffer, count * Float.BYTES, what);
    }

    /** Bytes that are numbers must be in the machine's order. */
    static void checkOrder(ByteBuffer buffer, String what) {
        if (buffer.order() != ByteOrder.nativeOrder()) {
            throw OxbowException.invalid(what + " is " + buffer.order() + "; expected order(ByteOrder.nativeOrder())");
        }
    }

    static void checkRoom(ByteBuffer buffer, long bytes, String what) {
        if (bytes < 0 || buffer.remaining() < bytes) {
            throw OxbowException.of(
                    OxbowException.BUFFER_TOO_SMALL,
                    what + " has " + buffer.remaining() + " bytes between position and limit; needed are " + bytes);
        }
    }

    /** Part of an array, as in System.arraycopy. */
    static void checkRange(int length, int offset, int count, String what) {
        if (offset < 0 || count < 0 || offset > length - count) {
            throw OxbowException.invalid(
                    "offset " + offset + " and count " + count + " in " + what + " of length " + length);
        }
    }

    private static native int bytesToAlignment(ByteBuffer buffer);
}
