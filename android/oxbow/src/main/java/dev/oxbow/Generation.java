package dev.oxbow;

/** How a generation went. */
public final class Generation {
    /** Why it ended. */
    public enum Reason {
        // In the order of the native code, from 1 on.
        /** The model ended its text. */
        END_OF_TEXT,
        /** As many tokens as wanted. */
        MAX_TOKENS,
        /** A stop text was about to appear. */
        STOP_TEXT,
        /** By a {@link Cancellation}, by the listener, or because the session or generator was closed. */
        CANCELLED,
        /** The stream has reached the length this model was made for. */
        STREAM_FULL,
        /** The constraint is met and allows nothing more. */
        CONSTRAINT,
        /** Something that only a newer library knows. */
        UNKNOWN
    }

    // Places in the array of the native code.
    private static final int PROMPT_TOKENS = 0;
    static final int TOKENS = 1;
    private static final int POSITION = 2;
    private static final int PROMPT_NANOSECONDS = 3;
    static final int TOKEN_NANOSECONDS = 4;
    private static final int CHOICE = 5;
    static final int NUMBERS = 6;

    private static final Reason[] REASONS = Reason.values();

    private final Reason reason;
    private final long[] numbers;

    /** The numbers are those of Generator.progress(). */
    Generation(int end, long[] numbers) {
        reason = end >= 1 && end <= REASONS.length ? REASONS[end - 1] : Reason.UNKNOWN;
        this.numbers = numbers;
    }

    /** {@return why the text ended} */
    public Reason getReason() {
        return reason;
    }

    /** {@return tokens of the prompt that were fed} */
    public long getPromptTokens() {
        return numbers[PROMPT_TOKENS];
    }

    /** {@return tokens that were generated, without the one that ends a text} */
    public long getTokens() {
        return numbers[TOKENS];
    }

    /** {@return tokens of the stream, with one that may wait to be fed} */
    public long getPosition() {
        return numbers[POSITION];
    }

    /** {@return what feeding the prompt took} */
    public long getPromptNanoseconds() {
        return numbers[PROMPT_NANOSECONDS];
    }

    /** {@return what feeding the tokens of the text took} */
    public long getTokenNanoseconds() {
        return numbers[TOKEN_NANOSECONDS];
    }

    /** {@return which of the {@link Generator#setChoices choices} the text is; -1: it is none} */
    public int getChoice() {
        return (int) numbers[CHOICE];
    }

    @Override
    public String toString() {
        return reason + " after " + getPromptTokens() + " + " + getTokens() + " tokens";
    }
}
