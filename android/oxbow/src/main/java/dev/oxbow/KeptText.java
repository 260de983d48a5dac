package dev.oxbow;

import androidx.annotation.WorkerThread;
import java.io.Closeable;
import java.io.File;
import java.io.IOException;
import java.util.Objects;

/**
 * A text under way that can be put aside: its state goes to a file, its memory back to the system, and it goes on later, in
 * another process too. For an app: {@link #save} when it leaves the screen, since it may be killed there, and
 * {@link #onTrimMemory} when the system asks. Serves one thread at a time; the model must stay open.
 */
public final class KeptText implements Closeable {
    /** From here on nobody looks at the app: android.content.ComponentCallbacks2.TRIM_MEMORY_BACKGROUND. */
    private static final int IN_BACKGROUND = 40;

    private final Model model;
    private final SessionOptions sessionOptions;
    private final GeneratorOptions generatorOptions;
    private final File file;
    private Session session;
    private Generator generator;

    /**
     * Opens nothing yet.
     *
     * @param model stays open as long as this
     * @param sessionOptions of the session it makes
     * @param generatorOptions of the generator it makes
     * @param file what it holds, if it is there, is where the text goes on
     */
    public KeptText(Model model, SessionOptions sessionOptions, GeneratorOptions generatorOptions, File file) {
        this.model = Objects.requireNonNull(model);
        this.sessionOptions = Objects.requireNonNull(sessionOptions);
        this.generatorOptions = Objects.requireNonNull(generatorOptions);
        this.file = Objects.requireNonNull(file);
    }

    /**
     * The generator, opened if it is not. A file that is damaged, or was written by another model or with other
     * options, is refused with an {@link OxbowException}; {@link #forget} then begins anew.
     *
     * @return it, at the place of the text where it was
     * @throws IOException when the file cannot be read
     */
    @WorkerThread
    public Generator generator() throws IOException {
        if (generator == null) {
            open();
            try {
                if (file.exists()) {
                    generator.load(file);
                }
            } catch (IOException | RuntimeException e) {
                close();
                throw e;
            }
        }
        return generator;
    }

    private void open() {
        session = Session.create(model, sessionOptions);
        try {
            generator = Generator.create(session, generatorOptions);
        } finally {
            if (generator == null) {
                session.close();
                session = null;
            }
        }
    }

    /** {@return whether its memory is in use} */
    public boolean isOpen() {
        return generator != null;
    }

    /**
     * Writes the state to the file, which is replaced as a whole. Does nothing to a text that was put aside.
     *
     * @throws IOException when it cannot be written; the file is as it was
     */
    @WorkerThread
    public void save() throws IOException {
        if (generator != null) {
            generator.save(file);
        }
    }

    /**
     * Saves the text and gives its memory back; {@link #generator} goes on with it.
     *
     * @throws IOException when it cannot be saved; nothing is given back then
     */
    @WorkerThread
    public void putAside() throws IOException {
        save();
        close();
    }

    /**
     * Puts the text aside when nobody looks.
     *
     * @param level what {@code ComponentCallbacks2.onTrimMemory} got
     * @return whether it was
     * @throws IOException when it cannot be saved; nothing is given back then
     */
    @WorkerThread
    public boolean onTrimMemory(int level) throws IOException {
        if (level < IN_BACKGROUND || generator == null) {
            return false;
        }
        putAside();
        return true;
    }

    /**
     * Begins a new text: the file goes too.
     *
     * @throws IOException when the file cannot be deleted
     */
    @WorkerThread
    public void forget() throws IOException {
        if (generator != null) {
            generator.reset();
        }
        if (file.exists() && !file.delete()) {
            throw new IOException("cannot delete " + file);
        }
    }

    /** Gives the memory back and saves nothing. */
    @Override
    public void close() {
        if (generator != null) {
            generator.close();
            session.close();
        }
        generator = null;
        session = null;
    }
}
