package dev.oxbow;

/** What a model is for. */
public enum Task {
    // In the order of oxb_task.
    /** Gives the logits of the next token. */
    GENERATE,
    /** The same, after {@link Session#encode} has read a text. */
    TRANSLATE,
    /** Gives one row: a logit for each class. */
    CLASSIFY,
    /** Gives logits of the tokens themselves. */
    FILL_MASK,
    /** Gives hidden states. */
    ENCODE,
    /** Something that a newer native library knows and these classes do not. */
    UNKNOWN;

    private static final Task[] ALL = values();

    static Task of(long number) {
        return number >= 0 && number < UNKNOWN.ordinal() ? ALL[(int) number] : UNKNOWN;
    }
}
