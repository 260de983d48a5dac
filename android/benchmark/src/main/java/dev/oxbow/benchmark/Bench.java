package dev.oxbow.benchmark;

import android.util.Log;
import java.io.File;
import java.util.List;

/** One measurement on a thread of its own. It outlives an activity that is turned, and ends with one that is closed. */
final class Bench {
    /** Hears the result, on any thread; at once when it is there. */
    interface Listener {
        void onResult(String result);
    }

    private static final String TAG = "OxbowBench";
    /** The log cuts longer lines. */
    private static final int LOG_LINE = 3000;
    /** Of all activities of the app: one after the other. */
    private static final Object TURN = new Object();

    private final Measurement measurement;
    private final File folder;
    private Listener listener;
    private String result;

    Bench(List<String> command, Phone phone, File folder) {
        measurement = new Measurement(command, phone);
        this.folder = folder;
        new Thread(this::measure, "bench").start();
    }

    void show(Listener next) {
        String known;
        synchronized (this) {
            listener = next;
            known = result;
        }
        if (next != null && known != null) {
            next.onResult(known);
        }
    }

    void stop() {
        measurement.stop();
    }

    private void measure() {
        String told;
        synchronized (TURN) {
            try {
                told = measurement.run();
                if (!measurement.isStopped()) {
                    Measurement.write(new File(folder, "result.json"), told);
                }
            } catch (Exception e) {
                told = measurement.failure(e.toString());
            }
        }
        for (int at = 0; at < told.length(); at += LOG_LINE) {
            Log.i(TAG, told.substring(at, Math.min(at + LOG_LINE, told.length())));
        }
        Listener now;
        synchronized (this) {
            result = told;
            now = listener;
        }
        if (now != null) {
            now.onResult(told);
        }
    }
}
