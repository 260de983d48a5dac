package dev.oxbow;

import java.nio.charset.StandardCharsets;

/** Anything the library refuses or cannot do: a code to decide by and words to read. */
public final class OxbowException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public static final int INVALID_ARGUMENT = 10;
    public static final int ARENA_TOO_SMALL = 11;
    public static final int BUFFER_TOO_SMALL = 12;
    /** An earlier run failed half-way: reset, load or rewind the session. */
    public static final int NEEDS_RESET = 13;
    /** The stream has reached the length this model was made for. */
    public static final int STREAM_FULL = 14;
    /** {@link Session#cancel} ended the run. */
    public static final int CANCELLED = 15;
    /** The vocabulary lacks a character of the text, or a word is too long; the message tells the byte. */
    public static final int TEXT_STOPPED = 16;
    public static final int FILE_UNREADABLE = 20;
    public static final int FILE_CORRUPT = 21;
    public static final int FILE_UNSUPPORTED = 22;
    public static final int STATE_CORRUPT = 30;
    /** A state of another model. */
    public static final int STATE_MISMATCH = 31;
    public static final int OUT_OF_MEMORY = 40;
    /** The backend's device is not there: take another backend. */
    public static final int NO_DEVICE = 41;
    /** The device is gone; so are the sessions on it. New ones open it anew. */
    public static final int DEVICE_LOST = 42;
    public static final int INTERNAL = 50;
    /** The object was closed before. */
    public static final int CLOSED = 100;
    /** Another call of the object is running, on another thread or around this one. */
    public static final int BUSY = 101;

    private final int code;
    private final int step;
    private final String op;

    OxbowException(int code, String message) {
        this(code, message, -1, "");
    }

    private OxbowException(int code, String message, int step, String op) {
        super(message);
        this.code = code;
        this.step = step;
        this.op = op;
    }

    /** What native code throws: words in UTF-8, of which the last character may be cut. */
    private OxbowException(int code, byte[] message, int step, byte[] op) {
        this(code, new String(message, StandardCharsets.UTF_8), step, new String(op, StandardCharsets.UTF_8));
    }

    static OxbowException invalid(String message) {
        return new OxbowException(INVALID_ARGUMENT, message);
    }

    /** One of the constants of this class, or one that only a newer native library knows. */
    public int getCode() {
        return code;
    }

    /** The step of the model that failed; -1: none was running. */
    public int getStep() {
        return step;
    }

    /** Its op; empty: none was running. */
    public String getOp() {
        return op;
    }
}
