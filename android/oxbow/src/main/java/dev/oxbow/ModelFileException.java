package dev.oxbow;

/** A model's file that cannot be read, is damaged, or holds what this library does not know: fetch it anew, or a newer one. */
public final class ModelFileException extends OxbowException {
    private static final long serialVersionUID = 1L;

    ModelFileException(int code, String message, int step, String op) {
        super(code, message, step, op);
    }
}
