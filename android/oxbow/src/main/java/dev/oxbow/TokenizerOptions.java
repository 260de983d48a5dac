package dev.oxbow;

/** How text becomes tokens and tokens text. */
public final class TokenizerOptions {
    boolean addTemplate = true;
    boolean parseSpecial = true;
    boolean skipSpecial = true;
    int maxWordBytes = 4096;

    /** Whether the tokens that the model expects before and behind a text, such as its start, are added. On. */
    public TokenizerOptions addTemplate(boolean on) {
        addTemplate = on;
        return this;
    }

    /**
     * Whether the text of a special token, such as "&lt;|endoftext|&gt;", becomes that token. On; off is right for text
     * of strangers.
     */
    public TokenizerOptions parseSpecial(boolean on) {
        parseSpecial = on;
        return this;
    }

    /** Whether special tokens give no text. On. */
    public TokenizerOptions skipSpecial(boolean on) {
        skipSpecial = on;
        return this;
    }

    /** Bytes of the longest word, 64 to 16,777,216; 4,096 unless set. Memory grows with it. */
    public TokenizerOptions maxWordBytes(int bytes) {
        maxWordBytes = bytes;
        return this;
    }
}
