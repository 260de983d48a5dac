package dev.oxbow;

/** How text becomes tokens and tokens text. */
public final class TokenizerOptions {
    // Values of add_template.
    private static final int FIRST = 2;
    private static final int SECOND = 3;

    int addTemplate = 1;
    boolean parseSpecial = true;
    boolean skipSpecial = true;
    int maxWordBytes = 4096;

    /**
     * Whether the tokens that the model expects before and behind a text, such as its start, are added.
     *
     * @param on on unless set
     * @return this
     */
    public TokenizerOptions addTemplate(boolean on) {
        addTemplate = on ? 1 : 0;
        return this;
    }

    /**
     * For the first of two texts that a model takes together, such as a question and a passage: it gets what the model
     * expects around a first text. The ids of both follow each other in one run. Refused when the model takes no pairs.
     *
     * @return this
     */
    public TokenizerOptions firstOfPair() {
        addTemplate = FIRST;
        return this;
    }

    /**
     * For the second of two texts: see {@link #firstOfPair}.
     *
     * @return this
     */
    public TokenizerOptions secondOfPair() {
        addTemplate = SECOND;
        return this;
    }

    /**
     * Whether the text of a special token, such as "&lt;|endoftext|&gt;", becomes that token.
     *
     * @param on on unless set; off is right for text of strangers
     * @return this
     */
    public TokenizerOptions parseSpecial(boolean on) {
        parseSpecial = on;
        return this;
    }

    /**
     * Whether special tokens give no text.
     *
     * @param on on unless set
     * @return this
     */
    public TokenizerOptions skipSpecial(boolean on) {
        skipSpecial = on;
        return this;
    }

    /**
     * Bytes of the longest word. Memory grows with it.
     *
     * @param bytes 64 to 16,777,216; 4,096 unless set
     * @return this
     */
    public TokenizerOptions maxWordBytes(int bytes) {
        maxWordBytes = bytes;
        return this;
    }
}
