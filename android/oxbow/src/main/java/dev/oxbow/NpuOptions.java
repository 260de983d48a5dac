package dev.oxbow;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/** How an accelerator is opened. Read while it is. */
public final class NpuOptions {
    /** A key, its value, the next key and so on. */
    final List<String> settings = new ArrayList<>();

    /** Null: no log. */
    LogListener log;

    /**
     * A setting of the plug-in, such as a device's path; its manual lists them.
     *
     * @param key its name
     * @param value its value
     * @return this
     */
    public NpuOptions set(String key, String value) {
        settings.add(Objects.requireNonNull(key));
        settings.add(Objects.requireNonNull(value));
        return this;
    }

    /**
     * Who hears what the plug-in says, until the accelerator and its sessions are closed.
     *
     * @param listener nobody unless set
     * @return this
     */
    public NpuOptions log(LogListener listener) {
        log = Objects.requireNonNull(listener);
        return this;
    }
}
