package dev.oxbow;

import java.io.Closeable;
import java.io.File;
import java.util.Set;
import java.util.TreeSet;

/**
 * Tells the phone's scheduler how long work for a token may take and how long it took, so that it gives the clocks that are needed and
 * no more: {@code android.os.PerformanceHintManager}, from API level 31 on. Elsewhere nothing happens.
 */
public final class PerformanceHints implements Closeable {
    /** Null: not supported here. */
    private final Object session;

    private PerformanceHints(Object session) {
        this.session = session;
    }

    /**
     * Hints for the thread that calls, which is to be the one that generates, and those that {@code start} starts.
     *
     * @param context an {@code android.content.Context}
     * @param targetNanoseconds what a token may take, such as 50 million for twenty in a second
     * @param start creates the session with its threads
     * @return hints that do nothing where the phone takes none
     */
    public static PerformanceHints create(Object context, long targetNanoseconds, Runnable start) {
        if (targetNanoseconds < 1) {
            throw OxbowException.invalid("a target of " + targetNanoseconds + " ns");
        }
        Set<Integer> before = threads();
        start.run();
        Set<Integer> threads = threads();
        threads.removeAll(before);
        Object own = ownThread();
        if (own != null) {
            threads.add((Integer) own);
        }
        Object session =
                threads.isEmpty()
                        ? null
                        : Android.call(
                                Android.service(context, "performance_hint"),
                                "createHintSession",
                                new Class<?>[] {int[].class, long.class},
                                threads.stream().mapToInt(Integer::intValue).toArray(),
                                targetNanoseconds);
        return new PerformanceHints(session);
    }

    /** {@return whether the phone takes hints} */
    public boolean isSupported() {
        return session != null;
    }

    /**
     * Tells the phone of a token that was just made.
     *
     * @param nanoseconds what it took
     */
    public void report(long nanoseconds) {
        if (nanoseconds > 0) {
            Android.call(session, "reportActualWorkDuration", new Class<?>[] {long.class}, nanoseconds);
        }
    }

    @Override
    public void close() {
        Android.call(session, "close", new Class<?>[0]);
    }

    private static Object ownThread() {
        try {
            return Class.forName("android.os.Process").getMethod("myTid").invoke(null);
        } catch (ReflectiveOperationException | LinkageError e) {
            return null;
        }
    }

    /** Of this process, as the kernel numbers them. */
    static Set<Integer> threads() {
        Set<Integer> numbers = new TreeSet<>();
        String[] names = new File("/proc/self/task").list();
        for (String name : names == null ? new String[0] : names) {
            numbers.add(Integer.parseInt(name));
        }
        return numbers;
    }
}
