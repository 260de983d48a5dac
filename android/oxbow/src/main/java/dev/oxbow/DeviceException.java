package dev.oxbow;

/** A backend's device that is not there, or is gone: create the session with another backend. */
public final class DeviceException extends OxbowException {
    private static final long serialVersionUID = 1L;

    DeviceException(int code, String message, int step, String op) {
        super(code, message, step, op);
    }
}
