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

    private static final Reason[] REASONS = Reason.values();

    private final Reason reason;
    private final long[] numbers;

    /** The numbers are those of Generator.progress(). */
    Generation(int end, long[] numbers) {
        reason = end >= 1 && end <= REASONS.length ? REASONS[end - 1] : Reason.UNKNOWN;
        this.numbers = numbers;
    }

    public Reason getReason() {
        return reason;
    }

    /** Tokens of the prompt that were fed. */
    public long getPromptTokens() {
        return numbers[0];
    }

    /** Tokens that were generated, without the one that ends a text. */
    public long getTokens() {
        return numbers[1];
    }

    /** Tokens of the stream, with one that may wait to be fed. */
    public long getPosition() {
        return numbers[2];
    }

    /** What feeding the prompt took. */
    public long getPromptNanoseconds() {
        return numbers[3];
    }

    /** What feeding the tokens of the text took. */
    public long getTokenNanoseconds() {
        return numbers[4];
    }

    /** Which of the {@link Generator#setChoices choices} the text is; -1: it is none. */
    public int getChoice() {
        return (int) numbers[5];
    }

    @Override
    public String toString() {
        return reason + " after " + getPromptTokens() + " + " + getTokens() + " tokens";
    }
}
