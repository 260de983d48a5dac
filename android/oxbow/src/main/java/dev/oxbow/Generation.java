package dev.oxbow;

/** How a generation went. */
public final class Generation {
    /** Why it ended. */
    public enum Reason {
        // In the order of the native code.
        /** The model ended its text. */
        END_OF_TEXT,
        /** As many tokens as wanted. */
        MAX_TOKENS,
        /** A stop text was about to appear. */
        STOP_TEXT,
        /** By a {@link Cancellation}, by the listener, or because the session or generator was closed. */
        CANCELLED,
        /** The stream has reached the length this model was made for. */
        STREAM_FULL
    }

    private static final Reason[] REASONS = Reason.values();

    private final Reason reason;
    private final long promptTokens;
    private final long tokens;

    Generation(int reason, long promptTokens, long tokens) {
        this.reason = REASONS[reason];
        this.promptTokens = promptTokens;
        this.tokens = tokens;
    }

    public Reason getReason() {
        return reason;
    }

    /** Tokens of the prompt that were fed. */
    public long getPromptTokens() {
        return promptTokens;
    }

    /** Tokens that were generated, without the one that ends a text. */
    public long getTokens() {
        return tokens;
    }

    @Override
    public String toString() {
        return reason + " after " + promptTokens + " + " + tokens + " tokens";
    }
}
