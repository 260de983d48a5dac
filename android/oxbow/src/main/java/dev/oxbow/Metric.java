package dev.oxbow;

/** How near two vectors of a {@link VectorIndex} are. */
public enum Metric {
    // In the order of oxb_metric.
    /** Scores are inner products. */
    DOT,
    /** Scores are squared distances with a minus sign. */
    L2,
    /** Something that a newer native library knows and these classes do not; no index can be made of it. */
    UNKNOWN;

    private static final Metric[] ALL = values();

    static Metric of(long number) {
        return number >= 0 && number < UNKNOWN.ordinal() ? ALL[(int) number] : UNKNOWN;
    }
}
