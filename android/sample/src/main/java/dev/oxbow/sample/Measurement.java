package dev.oxbow.sample;

import android.content.Context;
import dev.oxbow.Model;
import dev.oxbow.Oxbow;
import dev.oxbow.Session;
import dev.oxbow.SessionOptions;
import java.io.IOException;
import java.util.Arrays;

/**
 * Feeds a stream to the model on a thread of its own, and notes what a token takes and what memory the library holds. It outlives an
 * activity that is turned.
 */
final class Measurement {
    /** Called on any thread. */
    interface Screen {
        void onChange();
    }

    /** What was measured: one number for each part of the stream. */
    static final class Result {
        final float[] microseconds;
        final float[] kibibytes;
        final int tokensOfPart;
        final String words;

        Result(float[] microseconds, float[] kibibytes, int tokensOfPart, String words) {
            this.microseconds = microseconds;
            this.kibibytes = kibibytes;
            this.tokensOfPart = tokensOfPart;
            this.words = words;
        }
    }

    private static final int PARTS = 60;
    private static final int TOKENS_OF_PART = 200;
    private static final double MICROSECOND = 1e3;

    private final float[] microseconds = new float[PARTS];
    private final float[] kibibytes = new float[PARTS];
    private Screen screen;
    private int done;
    private String words = "Measuring";
    private boolean stopped;

    Measurement(Context context, Settings settings) {
        new Thread(() -> run(context, settings), "measure").start();
    }

    synchronized void show(Screen next) {
        screen = next;
    }

    synchronized void stop() {
        stopped = true;
    }

    synchronized Result result() {
        return new Result(Arrays.copyOf(microseconds, done), Arrays.copyOf(kibibytes, done), TOKENS_OF_PART, words);
    }

    private void run(Context context, Settings settings) {
        String end;
        try {
            measure(context, settings.options());
            end = "Each dot: " + TOKENS_OF_PART + " tokens, one at a time";
        } catch (Exception | LinkageError e) {
            end = "Nothing was measured: " + e.getMessage();
        }
        synchronized (this) {
            words = end;
        }
        changed();
    }

    private void measure(Context context, SessionOptions options) throws IOException {
        try (Model model = ModelFile.open(context, options);
                Session session = Session.create(model, options)) {
            for (int part = 0; part < PARTS && !isStopped(); ++part) {
                note(part, medianTime(model, session));
            }
        }
    }

    private synchronized boolean isStopped() {
        return stopped;
    }

    /** The median of the tokens' times: other work of the phone shows in the mean. */
    private static float medianTime(Model model, Session session) {
        long[] times = new long[TOKENS_OF_PART];
        for (int i = 0; i < times.length; ++i) {
            int token = (int) ((session.getPosition() * 7919) % model.getVocabulary());
            long before = System.nanoTime();
            session.feed(token);
            times[i] = System.nanoTime() - before;
        }
        Arrays.sort(times);
        return (float) (times[times.length / 2] / MICROSECOND);
    }

    private void note(int part, float median) {
        synchronized (this) {
            microseconds[part] = median;
            kibibytes[part] = Oxbow.getNativeBytes() / 1024f;
            done = part + 1;
        }
        changed();
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
}
