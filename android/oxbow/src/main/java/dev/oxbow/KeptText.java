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

    /** Opens nothing yet. What the file holds, if it is there, is where the text goes on. */
    public KeptText(Model model, SessionOptions sessionOptions, GeneratorOptions generatorOptions, File file) {
        this.model = Objects.requireNonNull(model);
        this.sessionOptions = Objects.requireNonNull(sessionOptions);
        this.generatorOptions = Objects.requireNonNull(generatorOptions);
        this.file = Objects.requireNonNull(file);
    }

    /**
     * The generator, at the place of the text where it was. A file that is damaged, or was written by another model or with other
     * options, is refused with an {@link OxbowException}; {@link #forget} then begins anew.
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

    /** Whether its memory is in use. */
    public boolean isOpen() {
        return generator != null;
    }

    /** Writes the state to the file, which is replaced as a whole. Does nothing to a text that was put aside. */
    @WorkerThread
    public void save() throws IOException {
        if (generator != null) {
            generator.save(file);
        }
    }

    /** Saves the text and gives its memory back; {@link #generator} goes on with it. */
    @WorkerThread
    public void putAside() throws IOException {
        save();
        close();
    }

    /**
     * What {@code ComponentCallbacks2.onTrimMemory} got: puts the text aside when nobody looks.
     *
     * @return whether it was
     */
    @WorkerThread
    public boolean onTrimMemory(int level) throws IOException {
        if (level < IN_BACKGROUND || generator == null) {
            return false;
        }
        putAside();
        return true;
    }

    /** Begins a new text: the file goes too. */
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
