package dev.oxbow.sample;

import android.content.Context;
import dev.oxbow.Generation;
import dev.oxbow.Generator;
import dev.oxbow.GeneratorOptions;
import dev.oxbow.KeptText;
import dev.oxbow.Model;
import dev.oxbow.SessionOptions;
import java.io.File;
import java.io.IOException;
import java.util.Locale;

/** The app's model and a text of it, used by one thread. */
final class Writer {
    private static final GeneratorOptions GENERATION = new GeneratorOptions().maxTokens(4000);

    private final Model model;
    private final File stateFile;
    private SessionOptions options;
    private KeptText kept;

    private Writer(Model model, File stateFile, SessionOptions options) {
        this.model = model;
        this.stateFile = stateFile;
        this.options = options;
        kept = keep();
    }

    static Writer open(Context context, SessionOptions options) throws IOException {
        return new Writer(ModelFile.open(context), new File(context.getNoBackupFilesDir(), "stream.state"), options);
    }

    private KeptText keep() {
        return new KeptText(model, options, GENERATION, stateFile);
    }

    String about() {
        return String.format(
                Locale.ROOT,
                "%s, %d parameters, arena %d KiB",
                model.getArchitecture(),
                model.getParameters(),
                model.getArenaBytes(options) / 1024);
    }

    /** The text under way goes on with them: a state is the same with any number of threads. */
    void use(SessionOptions next) throws IOException {
        kept.putAside();
        options = next;
        kept = keep();
    }

    /**
     * Writes until the end or the cancellation, and tells how it went. Without a prompt the last text goes on. One that is
     * paused is saved: the app may be killed before it goes on.
     */
    String write(String prompt, Writing writing) throws IOException {
        if (prompt != null) {
            kept.forget();
        }
        Generator generator = kept.generator();
        Generation result =
                prompt != null
                        ? generator.generate(prompt, writing, writing.begin())
                        : generator.generate(new int[0], writing, writing.begin());
        if (writing.isPaused()) {
            kept.save();
        }
        long nanoseconds = result.getPromptNanoseconds() + result.getTokenNanoseconds();
        long tokens = result.getPromptTokens() + result.getTokens();
        return String.format(
                Locale.ROOT,
                "%s; %.1f tokens/s with the prompt, arena %d KiB",
                result,
                nanoseconds == 0 ? 0.0 : tokens * 1e9 / nanoseconds,
                generator.getSession().getArenaBytes() / 1024);
    }

    /** What an earlier process left cannot be used, or is not wanted. */
    void forget() throws IOException {
        kept.forget();
    }

    /** Gives the session's memory back. The text can go on: its state is in a file meanwhile. */
    void shrink() throws IOException {
        kept.putAside();
    }

    void close() {
        kept.close();
        model.close();
    }
}
