package dev.oxbow.sample;

import android.content.Context;
import dev.oxbow.Generation;
import dev.oxbow.Generator;
import dev.oxbow.GeneratorOptions;
import dev.oxbow.KeptText;
import dev.oxbow.Model;
import dev.oxbow.SessionOptions;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Locale;

/** The app's model and a text of it, used by one thread. */
final class Writer {
    private static final GeneratorOptions GENERATION = new GeneratorOptions().maxTokens(20000);

    private final Model model;
    private final File stateFile;
    /** What was written up to the saved state: a screen that is gone may have shown less. */
    private final File textFile;
    private SessionOptions options;
    private KeptText kept;

    private Writer(Model model, File folder, SessionOptions options) {
        this.model = model;
        stateFile = new File(folder, "stream.state");
        textFile = new File(folder, "stream.txt");
        this.options = options;
        kept = keep();
    }

    static Writer open(Context context, SessionOptions options) throws IOException {
        return new Writer(ModelFile.open(context, options), context.getNoBackupFilesDir(), options);
    }

    private KeptText keep() {
        return new KeptText(model, options, GENERATION, stateFile);
    }

    String about() {
        return String.format(
                Locale.ROOT,
                "%s, %d parameters",
                model.getArchitecture(),
                model.getParameters());
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
            write(textFile, writing.textFrom(0));
        }
        long nanoseconds = result.getPromptNanoseconds() + result.getTokenNanoseconds();
        long tokens = result.getPromptTokens() + result.getTokens();
        return String.format(
                Locale.ROOT,
                "%s; %.1f tokens/s with the prompt",
                result,
                nanoseconds == 0 ? 0.0 : tokens * 1e9 / nanoseconds);
    }

    /** Of the text that an earlier process saved. */
    String savedText() throws IOException {
        try (FileInputStream in = new FileInputStream(textFile)) {
            ByteArrayOutputStream all = new ByteArrayOutputStream();
            byte[] buffer = new byte[1 << 13];
            for (int count; (count = in.read(buffer)) > 0; ) {
                all.write(buffer, 0, count);
            }
            return new String(all.toByteArray(), StandardCharsets.UTF_8);
        }
    }

    private static void write(File file, String text) throws IOException {
        try (FileOutputStream out = new FileOutputStream(file)) {
            out.write(text.getBytes(StandardCharsets.UTF_8));
        }
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
