package dev.oxbow;

/** One text that a {@link BeamSearch} found. */
public final class BeamText {
    private final int[] tokens;
    private final float score;

    BeamText(int[] tokens, float score) {
        this.tokens = tokens;
        this.score = score;
    }

    /** Its tokens, with the prompt and the end. */
    public int[] getTokens() {
        return tokens.clone();
    }

    /** The higher the likelier; what it is made of tells {@link BeamOptions}. */
    public float getScore() {
        return score;
    }
}
