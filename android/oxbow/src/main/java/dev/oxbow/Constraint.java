package dev.oxbow;

/** What a generated text may be; see {@link Generator#setConstraint}. */
public enum Constraint {
    /** A text may be anything. */
    NONE(0),
    /** A value in JSON, nested 64 deep at most. */
    JSON(2),
    /** The same, but an object. */
    JSON_OBJECT(3);

    static final int CHOICES = 1;

    final int code;

    Constraint(int code) {
        this.code = code;
    }
}
