package dev.oxbow;

/** How a model's tokenizer cuts text. */
public enum TokenizerKind {
    // In the order of oxb_tokenizer_kind.
    /** The file has no tokenizer: the model takes tokens only. */
    NONE,
    /** A token is a byte. */
    BYTE,
    /** A token is a character. */
    CHAR,
    /** GPT-2's and its successors': bytes joined to words. */
    BYTE_BPE,
    /** BERT's. */
    WORDPIECE,
    /** SentencePiece's first. */
    UNIGRAM,
    /** SentencePiece's second. */
    BPE,
    /** RWKV's World: the longest token each time. */
    LONGEST,
    /** Something that a newer native library knows and these classes do not. */
    UNKNOWN;

    private static final TokenizerKind[] ALL = values();

    static TokenizerKind of(long number) {
        return number >= 0 && number < UNKNOWN.ordinal() ? ALL[(int) number] : UNKNOWN;
    }
}
