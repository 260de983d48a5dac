package dev.oxbow;

/** One text that a {@link BeamSearch} found. */
public final class BeamText {
    private final int[] tokens;
    private final float score;

    BeamText(int[] tokens, float score) {
        this.tokens = tokens;
        this.score = score;
    }

    /** {@return its tokens, with the prompt and the end} */
    public int[] getTokens() {
        return tokens.clone();
    }

    /** {@return the higher the likelier; what it is made of tells {@link BeamOptions}} */
    public float getScore() {
        return score;
    }
}
