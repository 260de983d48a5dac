package dev.oxbow.sample;

import android.content.Context;
import android.content.SharedPreferences;
import dev.oxbow.Backend;
import dev.oxbow.CpuCores;
import dev.oxbow.Oxbow;
import dev.oxbow.SessionOptions;

/**
 * How many threads compute, and who: kept by the system from one start of the app to the next. What is kept is on the disk, so
 * {@link #load} and {@link #options} are not for the main thread; the rest is for any.
 */
final class Settings {
    private static final String THREADS = "threads";
    private static final String BACKEND = "backend";
    private static final Backend[] BACKENDS = {Backend.AUTO, Backend.CPU, Backend.VULKAN};

    private final Context context;
    /** Null until it is loaded, when there is nothing to choose yet. */
    private SharedPreferences stored;
    private int threads = 2;
    private Backend backend = Backend.AUTO;

    Settings(Context context) {
        this.context = context.getApplicationContext();
    }

    synchronized void load() {
        if (stored == null) {
            stored = context.getSharedPreferences("settings", Context.MODE_PRIVATE);
            threads = stored.getInt(THREADS, threads);
            String name = stored.getString(BACKEND, "");
            for (Backend one : BACKENDS) {
                backend = one.name().equals(name) ? one : backend;
            }
        }
    }

    synchronized int threads() {
        return Math.max(1, Math.min(threads, Runtime.getRuntime().availableProcessors()));
    }

    /** The next number of threads; after the last core one again. */
    synchronized void nextThreads() {
        if (stored != null) {
            threads = threads() % Runtime.getRuntime().availableProcessors() + 1;
            stored.edit().putInt(THREADS, threads).apply();
        }
    }

    synchronized Backend backend() {
        return backend;
    }

    /** The next one that the native library has. */
    synchronized void nextBackend() {
        if (stored != null) {
            int at = 0;
            while (BACKENDS[at] != backend) {
                ++at;
            }
            do {
                at = (at + 1) % BACKENDS.length;
            } while (!Oxbow.isBuiltIn(BACKENDS[at]));
            backend = BACKENDS[at];
            stored.edit().putString(BACKEND, backend.name()).apply();
        }
    }

    /** The big cores, unless more threads are wanted than there are. */
    SessionOptions options() {
        load();
        long big = CpuCores.big();
        SessionOptions options = new SessionOptions().threads(threads()).backend(backend());
        return Long.bitCount(big) >= threads() ? options.cpuMask(big) : options;
    }
}
