package dev.oxbow.sample;

import android.content.Context;
import dev.oxbow.Generation;
import dev.oxbow.Generator;
import dev.oxbow.GeneratorOptions;
import dev.oxbow.Model;
import dev.oxbow.OxbowException;
import dev.oxbow.Session;
import dev.oxbow.SessionOptions;
import java.io.IOException;
import java.util.Locale;

/** The app's model and a session of it, used by one thread. */
final class Writer {
    private final Model model;
    private final Session session;
    private final Generator generator;
    private final long arenaBytes;

    private Writer(Model model, Session session, Generator generator, long arenaBytes) {
        this.model = model;
        this.session = session;
        this.generator = generator;
        this.arenaBytes = arenaBytes;
    }

    static Writer open(Context context) throws IOException {
        Model model = ModelFile.open(context);
        Session session = null;
        try {
            SessionOptions options = new SessionOptions().threads(2);
            session = Session.create(model, options);
            Generator generator = Generator.create(session, new GeneratorOptions().maxTokens(1000));
            return new Writer(model, session, generator, model.getArenaBytes(options));
        } catch (OxbowException e) {
            if (session != null) {
                session.close();
            }
            model.close();
            throw e;
        }
    }

    String about() {
        return String.format(
                Locale.ROOT,
                "%s, %d parameters, arena %d KiB",
                model.getArchitecture(),
                model.getParameters(),
                arenaBytes / 1024);
    }

    /** Writes until the end or the cancellation, and tells how it went. */
    String write(String prompt, Writing writing) {
        session.reset();
        long start = System.nanoTime();
        try {
            Generation generation = generator.generate(prompt, writing, writing.cancellation);
            double seconds = (System.nanoTime() - start) * 1e-9;
            return String.format(
                    Locale.ROOT,
                    "%s; %.1f tokens/s with the prompt, arena %d KiB",
                    generation,
                    (generation.getPromptTokens() + generation.getTokens()) / seconds,
                    arenaBytes / 1024);
        } catch (OxbowException e) {
            return e.getMessage();
        }
    }

    void close() {
        generator.close();
        session.close();
        model.close();
    }
}
