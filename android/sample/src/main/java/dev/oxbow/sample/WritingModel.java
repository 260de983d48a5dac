package dev.oxbow.sample;

import android.content.Context;
import dev.oxbow.Oxbow;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * What outlives an activity that is turned: the model, its one thread, and the text under way. A screen is told when there
 * is something new, and asks for it.
 */
final class WritingModel {
    /** Called on any thread. */
    interface Screen {
        void onChange();
    }

    private final Context context;
    private final Settings settings;
    private final ExecutorService worker = Executors.newSingleThreadExecutor();
    /** Used by the worker alone. */
    private Writer writer;

    private Screen screen;
    private String status = "Opening the model";
    /** The text that is shown; counts texts, so that a screen sees when another one begins. */
    private Writing writing;
    private int textNumber;
    private boolean busy;
    /** The native library is there. */
    private boolean opened;

    /** The text before is what an earlier process had shown; when it was paused, {@link #resume} goes on with it. */
    WritingModel(Context context, String before, boolean paused) {
        this.context = context.getApplicationContext();
        settings = new Settings(context);
        writing = new Writing(this::changed);
        writing.onText(before);
        if (paused) {
            writing.pause();
        }
        worker.execute(this::open);
        if (paused) {
            Writing earlier = writing;
            work(writer -> earlier.goOnBehind(writer.savedText()));
        }
    }

    synchronized void show(Screen next) {
        screen = next;
    }

    private void changed() {
        Screen now;
        synchronized (this) {
            now = screen;
        }
        if (now != null) {
            now.onChange();
        }
    }

    private void tell(String words) {
        synchronized (this) {
            status = words;
        }
        changed();
    }

    /** Opening maps the file and reads none of its weights, but it is a file all the same. */
    private void open() {
        try {
            settings.load();
            writer = Writer.open(context, settings.options());
            synchronized (this) {
                opened = true;
            }
            tell(writer.about());
        } catch (Exception | LinkageError e) {
            // An app for another processor has no native library for this one.
            tell("No model: " + e.getMessage());
        }
    }

    Settings settings() {
        return settings;
    }

    synchronized String status() {
        String memory = opened ? ", library " + Oxbow.getNativeBytes() / 1024 + " KiB" : "";
        return (busy ? writing.rate() + status : status) + memory;
    }

    synchronized boolean isBusy() {
        return busy;
    }

    synchronized int textNumber() {
        return textNumber;
    }

    synchronized String textFrom(int characters) {
        return writing.textFrom(characters);
    }

    synchronized void start(String prompt) {
        if (busy) {
            return;
        }
        writing = new Writing(this::changed);
        ++textNumber;
        submit(prompt, writing);
    }

    synchronized void stop() {
        writing.stop();
    }

    /** Whether the text is to go on later, by another process if need be. */
    synchronized boolean isPaused() {
        return writing.isPaused();
    }

    /** The text under way goes on as the settings are now: with other threads, or on another device. */
    void useSettings() {
        boolean goesOn;
        synchronized (this) {
            goesOn = busy;
        }
        pause();
        work(writer -> writer.use(settings.options()));
        if (goesOn) {
            worker.execute(this::resume);
        }
    }

    /** Nobody looks: the processor is for others. */
    synchronized void pause() {
        if (busy) {
            writing.pause();
        }
    }

    /** Goes on with what {@link #pause} ended. */
    synchronized void resume() {
        if (writing.isPaused()) {
            writing.goOn();
            submit(null, writing);
        }
    }

    private void submit(String prompt, Writing text) {
        busy = true;
        status = "writing";
        changed();
        worker.execute(() -> write(prompt, text));
    }

    private void write(String prompt, Writing text) {
        String end;
        try {
            end = writer == null ? "There is no model" : writer.write(prompt, text);
        } catch (Exception e) {
            end = e.getMessage();
            text.stop();
        }
        synchronized (this) {
            busy = false;
            status = text.isPaused() ? "Paused" : end;
        }
        changed();
    }

    /** The system is short of memory and nobody looks. */
    void shrink() {
        pause();
        work(Writer::shrink);
    }

    /** What the worker does to a writer that is there. */
    private interface Work {
        void on(Writer writer) throws Exception;
    }

    private void work(Work what) {
        worker.execute(
                () -> {
                    try {
                        if (writer != null) {
                            what.on(writer);
                        }
                    } catch (Exception e) {
                        tell(e.getMessage());
                    }
                });
    }

    /** A text that is paused stays so: its state is in a file. */
    void close() {
        show(null);
        synchronized (this) {
            writing.cancel();
        }
        work(Writer::close);
        worker.shutdown();
    }
}
