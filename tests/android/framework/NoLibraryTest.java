package dev.oxbow.framework;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import android.widget.Button;
import android.widget.TextView;
import dev.oxbow.sample.MainActivity;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.Robolectric;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.android.controller.ActivityController;

/** In a process of its own, where the native library is not found: the app says so and stays. */
@RunWith(RobolectricTestRunner.class)
public class NoLibraryTest {
    @Test
    public void theSampleSaysSo() throws Exception {
        ActivityController<MainActivity> controller = Robolectric.buildActivity(MainActivity.class).setup();
        TextView status = Screen.at(controller.get(), 2);
        Button button = Screen.at(controller.get(), 1, 0);
        Screen.until("it says so", () -> status.getText().toString().startsWith("No model: "));
        button.performClick();
        Screen.until("no text", () -> status.getText().toString().startsWith("There is no model"));
        assertEquals("Write", button.getText().toString());
        Button threads = Screen.at(controller.get(), 1, 1);
        threads.performClick();
        Button backend = Screen.at(controller.get(), 1, 2);
        backend.performClick();
        controller.pause().stop().destroy();
        assertTrue(controller.get().isDestroyed());
    }
}
