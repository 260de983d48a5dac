package dev.oxbow.framework;

import static org.robolectric.shadows.ShadowLooper.shadowMainLooper;

import android.app.Activity;
import android.view.ViewGroup;
import java.time.Duration;
import java.util.concurrent.Callable;

/** What the tests of both apps do with a screen. */
final class Screen {
    private Screen() {}

    /** A view by its place: content, then the children of each group. */
    @SuppressWarnings("unchecked")
    static <T> T at(Activity activity, int... path) {
        ViewGroup group = activity.findViewById(android.R.id.content);
        Object view = group.getChildAt(0);
        for (int index : path) {
            view = ((ViewGroup) view).getChildAt(index);
        }
        return (T) view;
    }

    /** Lets the main thread do what waits for it, frames included. */
    static void idle() {
        shadowMainLooper().idleFor(Duration.ofMillis(20));
    }

    /** Waits, with the main thread idle in between. */
    static void until(String what, Callable<Boolean> condition) throws Exception {
        for (long end = System.nanoTime() + 60_000_000_000L; !condition.call(); ) {
            if (System.nanoTime() > end) {
                throw new AssertionError("not in a minute: " + what);
            }
            idle();
            Thread.sleep(2);
        }
    }
}
