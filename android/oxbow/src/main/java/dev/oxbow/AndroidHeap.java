package dev.oxbow;

import java.lang.reflect.Method;

/**
 * Tells Android's collector of native memory where an app may, which is at API levels 24 to 27. Later the call is not for apps: strict
 * mode reports it. It is not needed from 29 on, where the collector counts what malloc gives, as ours is. {@link Cleanup} asks for a
 * collection at all levels.
 */
final class AndroidHeap {
    /** The first level that keeps apps from what is not public. */
    private static final int FIRST_STRICT = 28;

    private static final Object RUNTIME = find();

    private AndroidHeap() {}

    private static Object find() {
        try {
            int level = Class.forName("android.os.Build$VERSION").getField("SDK_INT").getInt(null);
            return level < FIRST_STRICT ? Class.forName("dalvik.system.VMRuntime").getMethod("getRuntime").invoke(null) : null;
        } catch (ReflectiveOperationException e) {
            return null;
        }
    }

    static void add(long bytes) {
        tell("registerNativeAllocation", bytes);
    }

    static void remove(long bytes) {
        tell("registerNativeFree", bytes);
    }

    private static void tell(String name, long bytes) {
        if (RUNTIME == null) {
            return;
        }
        try {
            Method method = RUNTIME.getClass().getMethod(name, int.class);
            for (long left = bytes; left > 0; left -= Integer.MAX_VALUE) {
                method.invoke(RUNTIME, (int) Math.min(left, Integer.MAX_VALUE));
            }
        } catch (ReflectiveOperationException e) {
            // It then knows less, and is asked to run nevertheless.
        }
    }
}
