package dev.oxbow;

/** A saved state that is damaged or is one of another model: begin a new stream. The session or generator is as it was. */
public final class SavedStateException extends OxbowException {
    private static final long serialVersionUID = 1L;

    SavedStateException(int code, String message, int step, String op) {
        super(code, message, step, op);
    }
}
