package dev.oxbow;

/** Hears a text while it is generated, on the thread that called {@link Generator#generate}. */
public interface TextListener {
    /**
     * The next piece: never empty, only whole characters. False ends the generation, and an exception too, which
     * comes out of {@code generate}; in both cases the session's stream ends with the token of this piece. The session
     * and the generator are busy meanwhile and refuse calls.
     */
    boolean onText(String piece);
}
