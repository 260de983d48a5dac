package dev.oxbow;

/** Hears what happens to a model and its sessions; see {@link OpenOptions#log}. */
public interface LogListener {
    /**
     * Something happened: a model was opened, a session created and who computes its steps, or refused and why, a text
     * ended and how. Called on the thread of the call that it is about, which goes on afterwards whatever this throws.
     * The object of that call is busy meanwhile.
     *
     * @param level how much it matters
     * @param line in words, without its end
     */
    void onLine(LogLevel level, String line);
}
