package dev.oxbow;

/** Hears of a generation's prompt and of its tokens, too. On the thread that called {@link Generator#generate}. */
public interface ProgressListener extends TextListener {
    /**
     * How much of the prompt was read: first 0, at last {@code all}; of a text in bytes of UTF-8, else in tokens. A message of a chat is
     * read in one step.
     */
    void onPrompt(int done, int all);

    /** A token was picked, of which the text may follow: how many they are now, and what feeding those before this one took. */
    void onToken(long tokens, long nanoseconds);
}
