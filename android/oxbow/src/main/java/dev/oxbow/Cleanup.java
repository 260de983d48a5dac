package dev.oxbow;

import java.lang.ref.PhantomReference;
import java.lang.ref.ReferenceQueue;
import java.util.Collections;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** Frees the handle of an object that became unreachable without being closed, when the next one is created. */
final class Cleanup extends PhantomReference<NativeObject> {
    private static final ReferenceQueue<NativeObject> QUEUE = new ReferenceQueue<>();
    /** References must be reachable themselves to be enqueued. */
    private static final Set<Cleanup> LIVING = Collections.newSetFromMap(new ConcurrentHashMap<Cleanup, Boolean>());

    volatile long handle;

    Cleanup(NativeObject object) {
        super(object, QUEUE);
        drain();
        LIVING.add(this);
    }

    void run() {
        LIVING.remove(this);
        // A handle that was freed before names nothing, so twice is harmless, also from two threads.
        NativeObject.release(handle);
    }

    static void drain() {
        for (Object dead; (dead = QUEUE.poll()) != null; ) {
            ((Cleanup) dead).run();
        }
    }
}
