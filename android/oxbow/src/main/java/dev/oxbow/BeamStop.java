package dev.oxbow;

/** When a {@link BeamSearch} ends. */
public enum BeamStop {
    // In the order of oxb_beam_stop.
    /** There are as many ended texts as beams, and the likeliest open text would now be no better. */
    UNLIKELY_BETTER,
    /** There are as many ended texts as beams. */
    ENOUGH_TEXTS,
    /** There are as many ended texts as beams, and none that is open can become better. */
    NONE_BETTER,
    /** Something that a newer native library knows and these classes do not; it cannot be asked for. */
    UNKNOWN;

    private static final BeamStop[] ALL = values();

    static BeamStop of(long number) {
        return number >= 0 && number < UNKNOWN.ordinal() ? ALL[(int) number] : UNKNOWN;
    }
}
