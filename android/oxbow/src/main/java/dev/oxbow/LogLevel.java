package dev.oxbow;

/** How much a line of the log matters. */
public enum LogLevel {
    // In the order of oxb_log_level.
    /** What happened. */
    INFO,
    /** What was refused, or is not as it could be. */
    WARNING,
    /** Something that only a newer native library knows. */
    UNKNOWN;

    private static final LogLevel[] ALL = values();

    static LogLevel of(int number) {
        return number >= 0 && number < UNKNOWN.ordinal() ? ALL[number] : UNKNOWN;
    }
}
