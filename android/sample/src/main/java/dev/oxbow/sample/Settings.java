package dev.oxbow.sample;

import android.content.Context;
import android.content.SharedPreferences;
import dev.oxbow.Backend;
import dev.oxbow.CpuCores;
import dev.oxbow.Oxbow;
import dev.oxbow.SessionOptions;

/** How many threads compute, and who: kept by the system from one start of the app to the next. */
final class Settings {
    private static final String THREADS = "threads";
    private static final String BACKEND = "backend";
    private static final Backend[] BACKENDS = {Backend.AUTO, Backend.CPU, Backend.VULKAN};

    private final SharedPreferences stored;

    Settings(Context context) {
        stored = context.getSharedPreferences("settings", Context.MODE_PRIVATE);
    }

    int threads() {
        return Math.max(1, Math.min(stored.getInt(THREADS, 2), Runtime.getRuntime().availableProcessors()));
    }

    /** The next number of threads; after the last core one again. */
    void nextThreads() {
        stored.edit().putInt(THREADS, threads() % Runtime.getRuntime().availableProcessors() + 1).apply();
    }

    Backend backend() {
        String name = stored.getString(BACKEND, "");
        for (Backend backend : BACKENDS) {
            if (backend.name().equals(name)) {
                return backend;
            }
        }
        return Backend.AUTO;
    }

    /** The next one that the native library has. */
    void nextBackend() {
        int at = 0;
        while (BACKENDS[at] != backend()) {
            ++at;
        }
        do {
            at = (at + 1) % BACKENDS.length;
        } while (!Oxbow.isBuiltIn(BACKENDS[at]));
        stored.edit().putString(BACKEND, BACKENDS[at].name()).apply();
    }

    /** The big cores, unless more threads are wanted than there are. */
    SessionOptions options() {
        long big = CpuCores.big();
        SessionOptions options = new SessionOptions().threads(threads()).backend(backend());
        return Long.bitCount(big) >= threads() ? options.cpuMask(big) : options;
    }
}
