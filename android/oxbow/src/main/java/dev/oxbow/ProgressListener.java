package dev.oxbow;

/** Hears of a generation's prompt and of its tokens, too. On the thread that called {@link Generator#generate}. */
public interface ProgressListener extends TextListener {
    /**
     * Part of the prompt was read. A message of a chat is read in one step.
     *
     * @param done first 0, at last {@code all}: of a text in bytes of UTF-8, else in tokens
     * @param all the whole prompt
     */
    void onPrompt(int done, int all);

    /**
     * A token was picked, of which the text may follow.
     *
     * @param tokens how many they are now
     * @param nanoseconds what feeding those before this one took
     */
    void onToken(long tokens, long nanoseconds);
}
