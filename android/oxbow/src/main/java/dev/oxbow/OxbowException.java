package dev.oxbow;

import java.nio.charset.StandardCharsets;

/**
 * Anything the library refuses or cannot do: a code and words to read. What a program may want to catch by itself is a class of its
 * own: {@link ModelFileException}, {@link SavedStateException}, {@link DeviceException}, and {@link MisuseException} for mistakes of
 * the program.
 */
public class OxbowException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** An argument is refused; the message tells why. */
    public static final int INVALID_ARGUMENT = 10;
    /** The buffer for a session is smaller than {@link Model#getArenaBytes}. */
    public static final int ARENA_TOO_SMALL = 11;
    /** A buffer has less room than what is to be written. */
    public static final int BUFFER_TOO_SMALL = 12;
    /** An earlier run failed half-way: reset, load or rewind the session. */
    public static final int NEEDS_RESET = 13;
    /** The stream has reached the length this model was made for. */
    public static final int STREAM_FULL = 14;
    /** {@link Session#cancel} ended the run. */
    public static final int CANCELLED = 15;
    /** The vocabulary lacks a character of the text, or a word is too long; the message tells the byte. */
    public static final int TEXT_STOPPED = 16;
    /** The file is not there, or the system does not give it. */
    public static final int FILE_UNREADABLE = 20;
    /** The file is no model, or a damaged one. */
    public static final int FILE_CORRUPT = 21;
    /** The file is newer than this library, or needs what it was built without. */
    public static final int FILE_UNSUPPORTED = 22;
    /** A saved state is damaged. */
    public static final int STATE_CORRUPT = 30;
    /** A state of another model. */
    public static final int STATE_MISMATCH = 31;
    /** The system gives no more memory. */
    public static final int OUT_OF_MEMORY = 40;
    /** The backend's device is not there: take another backend. */
    public static final int NO_DEVICE = 41;
    /** The device is gone; so are the sessions on it. New ones open it anew. */
    public static final int DEVICE_LOST = 42;
    /** A mistake of the library itself. */
    public static final int INTERNAL = 50;
    /** The object was closed before. */
    public static final int CLOSED = 100;
    /** Another call of the object is running, on another thread or around this one. */
    public static final int BUSY = 101;

    /** @serial what {@link #getCode} gives */
    private final int code;
    /** @serial what {@link #getStep} gives */
    private final int step;
    /** @serial what {@link #getOp} gives */
    private final String op;

    OxbowException(int code, String message, int step, String op) {
        super(message);
        this.code = code;
        this.step = step;
        this.op = op;
    }

    /** What native code throws: words in UTF-8, of which the last character may be cut. */
    private static OxbowException of(int code, byte[] message, int step, byte[] op) {
        return of(code, new String(message, StandardCharsets.UTF_8), step, new String(op, StandardCharsets.UTF_8));
    }

    /** By the tens of its code, also of one that only a newer native library knows. */
    private static OxbowException of(int code, String message, int step, String op) {
        switch (code) {
            case NEEDS_RESET:
            case STREAM_FULL:
            case CANCELLED:
            case TEXT_STOPPED:
            case OUT_OF_MEMORY:
                return new OxbowException(code, message, step, op);
            default:
        }
        switch (code / 10) {
            case INVALID_ARGUMENT / 10:
            case CLOSED / 10:
                return new MisuseException(code, message, step, op);
            case FILE_UNREADABLE / 10:
                return new ModelFileException(code, message, step, op);
            case STATE_CORRUPT / 10:
                return new SavedStateException(code, message, step, op);
            case NO_DEVICE / 10:
                return new DeviceException(code, message, step, op);
            default:
                return new OxbowException(code, message, step, op);
        }
    }

    static OxbowException of(int code, String message) {
        return of(code, message, -1, "");
    }

    static OxbowException invalid(String message) {
        return of(INVALID_ARGUMENT, message);
    }

    /** {@return one of the constants of this class, or one that only a newer native library knows} */
    public int getCode() {
        return code;
    }

    /** {@return the step of the model that failed; -1: none was running} */
    public int getStep() {
        return step;
    }

    /** {@return its op; empty: none was running} */
    public String getOp() {
        return op;
    }
}
