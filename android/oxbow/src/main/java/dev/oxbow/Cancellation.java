package dev.oxbow;

import androidx.annotation.AnyThread;

/** Ends one generation from any thread, also one that is about to begin. Once cancelled it stays so. */
public final class Cancellation {
    private volatile boolean cancelled;

    /** The generation ends after the token, or the segment of the prompt, that is being computed. */
    @AnyThread
    public void cancel() {
        cancelled = true;
    }

    /** {@return whether {@link #cancel} was called} */
    public boolean isCancelled() {
        return cancelled;
    }
}
