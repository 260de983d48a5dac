package dev.oxbow.sample;

import dev.oxbow.Cancellation;
import dev.oxbow.TextListener;
import java.util.Locale;

/** One text on its way: collects its pieces, and tells how fast they come once that means something. */
final class Writing implements TextListener {
    /** Hears that there is more to show, on the worker's thread. */
    interface Listener {
        void onMore();
    }

    private static final long NANOSECONDS = 1_000_000_000L;
    /** A rate of less than that is that of the clock. */
    private static final long SHORTEST = NANOSECONDS / 2;

    private final Listener listener;
    private final StringBuilder text = new StringBuilder();
    private Cancellation cancellation = new Cancellation();
    /** The text is to go on some time. */
    private boolean paused;
    /** Of the time since it began or went on. */
    private long started;
    private long pieces;

    Writing(Listener listener) {
        this.listener = listener;
    }

    synchronized void stop() {
        paused = false;
        cancellation.cancel();
    }

    /** As it is, paused or not. */
    synchronized void cancel() {
        cancellation.cancel();
    }

    synchronized void pause() {
        paused = true;
        cancellation.cancel();
    }

    synchronized boolean isPaused() {
        return paused;
    }

    /** What ends the part of the text that begins now. */
    synchronized Cancellation begin() {
        pieces = 0;
        return cancellation;
    }

    synchronized void goOn() {
        paused = false;
        cancellation = new Cancellation();
    }

    @Override
    public boolean onText(String piece) {
        synchronized (this) {
            if (pieces++ == 0) {
                started = System.nanoTime();
            }
            text.append(piece);
        }
        listener.onMore();
        return true;
    }

    /** The whole text up to where it goes on, of which a screen that is gone had shown a beginning. */
    void goOnBehind(String saved) {
        synchronized (this) {
            if (saved.startsWith(text.toString())) {
                text.append(saved, text.length(), saved.length());
            }
        }
        listener.onMore();
    }

    /** What came behind the first so many characters. */
    synchronized String textFrom(int characters) {
        return text.substring(Math.min(characters, text.length()));
    }

    /** Empty as long as it would be a guess. */
    synchronized String rate() {
        long time = System.nanoTime() - started;
        if (pieces < 2 || time < SHORTEST) {
            return "";
        }
        return String.format(Locale.ROOT, "%.1f pieces/s, ", (pieces - 1) * (double) NANOSECONDS / time);
    }
}
