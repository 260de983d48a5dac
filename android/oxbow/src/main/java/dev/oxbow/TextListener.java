package dev.oxbow;

/** Hears a text while it is generated, on the thread that called {@link Generator#generate}. */
public interface TextListener {
    /**
     * The next piece. An exception ends the generation as well, and comes out of {@code generate}; in both cases the
     * session's stream ends with the token of this piece. The session and the generator are busy meanwhile and refuse
     * calls.
     *
     * @param piece never empty, only whole characters
     * @return false: no more is wanted
     */
    boolean onText(String piece);
}
