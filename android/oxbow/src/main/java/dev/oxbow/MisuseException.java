package dev.oxbow;

/** A mistake of the program: an argument that is refused, or an object that is closed or busy. Nothing to catch, but to mend. */
public final class MisuseException extends OxbowException {
    private static final long serialVersionUID = 1L;

    MisuseException(int code, String message, int step, String op) {
        super(code, message, step, op);
    }
}
