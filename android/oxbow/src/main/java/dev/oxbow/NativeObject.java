package dev.oxbow;

import androidx.annotation.AnyThread;
import java.io.Closeable;

/** What all objects with native memory share: a handle, and closing it. */
public abstract class NativeObject implements Closeable {
    private final Cleanup cleanup;

    NativeObject() {
        // Not in a static initializer: loading looks for the classes with native methods and initializes them, so two
        // threads that begin at different classes would wait for each other.
        Oxbow.load();
        cleanup = new Cleanup(this);
    }

    /** The constructor's last step: from here on the handle is freed whatever happens. */
    final void own(long handle) {
        cleanup.own(handle, nativeBytes(handle));
    }

    /** Names an object on the native side, where a number that names none is refused. 0 never names one. */
    final long handle() {
        return cleanup.handle;
    }

    /** Frees the native memory. Never fails, never waits; a second time does nothing. */
    @AnyThread
    @Override
    public void close() {
        cleanup.run();
    }

    static native void release(long handle);

    /** Memory that it holds, without what lies in files and in buffers of the application. */
    private static native long nativeBytes(long handle);
}
