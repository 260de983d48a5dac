package dev.oxbow;

import java.lang.ref.PhantomReference;
import java.lang.ref.ReferenceQueue;
import java.util.Collections;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.logging.Logger;

/**
 * Frees the handle of an object that became unreachable without being closed, when the next one is created. The collector
 * does not see how large native memory is: so when much more of it is held than after the last look, it is asked to run.
 */
final class Cleanup extends PhantomReference<NativeObject> {
    /** Native bytes that may be held beyond twice those after the last collection. */
    static final long UNSEEN_BYTES = 64L << 20;

    private static final ReferenceQueue<NativeObject> QUEUE = new ReferenceQueue<>();
    /** References must be reachable themselves to be enqueued. */
    private static final Set<Cleanup> LIVING = Collections.newSetFromMap(new ConcurrentHashMap<Cleanup, Boolean>());

    private static final AtomicLong HELD_BYTES = new AtomicLong();
    private static final AtomicLong COLLECT_ABOVE = new AtomicLong(UNSEEN_BYTES);
    private static final AtomicBoolean WARNED = new AtomicBoolean();

    private final String what;
    volatile long handle;
    private volatile long bytes;

    Cleanup(NativeObject object) {
        super(object, QUEUE);
        what = object.getClass().getSimpleName();
        drain();
        LIVING.add(this);
    }

    void own(long newHandle, long nativeBytes) {
        bytes = nativeBytes;
        handle = newHandle;
        AndroidHeap.add(nativeBytes);
        long limit = COLLECT_ABOVE.get();
        if (HELD_BYTES.addAndGet(nativeBytes) > limit && COLLECT_ABOVE.compareAndSet(limit, Long.MAX_VALUE)) {
            Runtime.getRuntime().gc();
            drain();
            COLLECT_ABOVE.set(nextLimit());
        }
    }

    void run() {
        // A handle that was freed before names nothing, so twice is harmless, also from two threads.
        if (LIVING.remove(this)) {
            HELD_BYTES.addAndGet(-bytes);
            AndroidHeap.remove(bytes);
        }
        NativeObject.release(handle);
    }

    static void drain() {
        for (Object dead; (dead = QUEUE.poll()) != null; ) {
            Cleanup left = (Cleanup) dead;
            // An object whose construction failed has no handle.
            if (left.handle != 0 && LIVING.contains(left) && WARNED.compareAndSet(false, true)) {
                Logger.getLogger("dev.oxbow")
                        .warning("a " + left.what + " of " + left.bytes + " native bytes was never closed; "
                                + "others like it will not be mentioned");
            }
            left.run();
            // What a collection finds comes a little later than it ends.
            COLLECT_ABOVE.accumulateAndGet(nextLimit(), (old, now) -> old == Long.MAX_VALUE ? old : Math.min(old, now));
        }
    }

    private static long nextLimit() {
        return 2 * HELD_BYTES.get() + UNSEEN_BYTES;
    }

    /** For tests. */
    static void mentionAgain() {
        WARNED.set(false);
    }

    /** Of all objects that were neither closed nor collected. */
    static long heldBytes() {
        return HELD_BYTES.get();
    }
}
