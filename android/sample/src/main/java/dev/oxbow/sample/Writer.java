package dev.oxbow.sample;

import android.content.Context;
import dev.oxbow.Generation;
import dev.oxbow.Generator;
import dev.oxbow.GeneratorOptions;
import dev.oxbow.Model;
import dev.oxbow.Session;
import dev.oxbow.SessionOptions;
import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.StandardOpenOption;
import java.util.Locale;

/** The app's model and a session of it, used by one thread. */
final class Writer {
    private static final SessionOptions OPTIONS = new SessionOptions().threads(2);
    private static final GeneratorOptions GENERATION = new GeneratorOptions().maxTokens(4000);

    private final Model model;
    private final File stateFile;
    private Session session;
    private Generator generator;

    private Writer(Model model, File stateFile) {
        this.model = model;
        this.stateFile = stateFile;
    }

    static Writer open(Context context) throws IOException {
        return new Writer(ModelFile.open(context), new File(context.getNoBackupFilesDir(), "stream.state"));
    }

    String about() {
        return String.format(
                Locale.ROOT,
                "%s, %d parameters, arena %d KiB",
                model.getArchitecture(),
                model.getParameters(),
                model.getArenaBytes(OPTIONS) / 1024);
    }

    /** Writes until the end or the cancellation, and tells how it went. Without a prompt the last text goes on. */
    String write(String prompt, Writing writing) throws IOException {
        boolean resumed = session == null;
        if (resumed) {
            session = Session.create(model, OPTIONS);
            generator = Generator.create(session, GENERATION);
        }
        Generation result;
        if (prompt != null) {
            generator.reset();
            result = generator.generate(prompt, writing, writing.begin());
        } else {
            if (resumed && stateFile.exists()) {
                load();
            }
            result = generator.generate(new int[0], writing, writing.begin());
        }
        long nanoseconds = result.getPromptNanoseconds() + result.getTokenNanoseconds();
        long tokens = result.getPromptTokens() + result.getTokens();
        return String.format(
                Locale.ROOT,
                "%s; %.1f tokens/s with the prompt, arena %d KiB",
                result,
                nanoseconds == 0 ? 0.0 : tokens * 1e9 / nanoseconds,
                session.getArenaBytes() / 1024);
    }

    /** Gives the session's memory back. The text can go on: its state is in a file meanwhile. */
    void shrink() throws IOException {
        if (session == null) {
            return;
        }
        ByteBuffer state = ByteBuffer.allocateDirect((int) generator.getStateBytes());
        generator.save(state);
        try (FileChannel file =
                FileChannel.open(
                        stateFile.toPath(),
                        StandardOpenOption.CREATE,
                        StandardOpenOption.WRITE,
                        StandardOpenOption.TRUNCATE_EXISTING)) {
            while (state.hasRemaining()) {
                file.write(state);
            }
        }
        closeSession();
    }

    private void load() throws IOException {
        try (FileChannel file = FileChannel.open(stateFile.toPath(), StandardOpenOption.READ)) {
            ByteBuffer state = ByteBuffer.allocateDirect((int) file.size());
            while (state.hasRemaining() && file.read(state) >= 0) {}
            state.flip();
            generator.load(state);
        }
    }

    private void closeSession() {
        if (session != null) {
            generator.close();
            session.close();
        }
        generator = null;
        session = null;
    }

    void close() {
        closeSession();
        model.close();
    }
}
