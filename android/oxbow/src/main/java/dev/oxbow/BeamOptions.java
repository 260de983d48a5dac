package dev.oxbow;

/** How a {@link BeamSearch} follows texts. Read when it is created. */
public final class BeamOptions {
    int beams = 4;
    int nBest = 1;
    int maxTokens;
    int minTokens;
    double lengthPenalty = 1.0;
    BeamStop stop = BeamStop.UNLIKELY_BETTER;

    /**
     * Texts followed at a time. One takes the most likely token each time.
     *
     * @param count 1 to 64; 4 unless set
     * @return this
     */
    public BeamOptions beams(int count) {
        beams = positive(count, "beams");
        return this;
    }

    /**
     * Texts wanted.
     *
     * @param count 1 to the number of beams; 1 unless set
     * @return this
     */
    public BeamOptions nBest(int count) {
        nBest = positive(count, "texts");
        return this;
    }

    /**
     * Tokens of a text at most, with the prompt and the end.
     *
     * @param count 0, the default: as many as the model's stream has
     * @return this
     */
    public BeamOptions maxTokens(int count) {
        maxTokens = notNegative(count);
        return this;
    }

    /**
     * Tokens of a text at least.
     *
     * @param count 0 unless set
     * @return this
     */
    public BeamOptions minTokens(int count) {
        minTokens = notNegative(count);
        return this;
    }

    /**
     * A text's score is the sum of the logarithms of its tokens' probabilities, divided by its length to a power.
     *
     * @param power -10 to 10; 1 unless set
     * @return this
     */
    public BeamOptions lengthPenalty(double power) {
        lengthPenalty = power;
        return this;
    }

    /**
     * When the search ends.
     *
     * @param when {@link BeamStop#UNLIKELY_BETTER} unless set
     * @return this
     */
    public BeamOptions stop(BeamStop when) {
        if (when == BeamStop.UNKNOWN) {
            throw OxbowException.invalid("nothing stops at UNKNOWN");
        }
        stop = java.util.Objects.requireNonNull(when);
        return this;
    }

    private static int positive(int count, String what) {
        if (count < 1) {
            throw OxbowException.invalid(count + " " + what);
        }
        return count;
    }

    private static int notNegative(int count) {
        if (count < 0) {
            throw OxbowException.invalid(count + " tokens");
        }
        return count;
    }
}
