package dev.oxbow.framework;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import android.content.ComponentCallbacks2;
import android.content.Context;
import android.os.Bundle;
import android.os.StrictMode;
import android.widget.Button;
import android.widget.EditText;
import android.widget.TextView;
import dev.oxbow.Oxbow;
import dev.oxbow.sample.MainActivity;
import dev.oxbow.sample.MeasureActivity;
import java.io.File;
import java.io.FileInputStream;
import java.security.Permission;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.junit.After;
import org.junit.Before;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.Robolectric;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.android.controller.ActivityController;

/**
 * The sample's main thread waits for no disk. Android's own strict mode sees what goes through the framework, such as settings that
 * are not loaded yet; what Java's classes read and write by themselves it sees on a phone only, so here a security manager looks.
 */
@RunWith(RobolectricTestRunner.class)
@SuppressWarnings("removal")
public class MainThreadTest {
    private final Thread main = Thread.currentThread();
    private final List<String> touched = Collections.synchronizedList(new ArrayList<>());
    private final StrictMode.ThreadPolicy policyBefore = StrictMode.getThreadPolicy();
    private SecurityManager before;

    /** Notes the files that the sample or the library reaches for on the main thread. */
    private final class Watch extends SecurityManager {
        private void note(String what, String file) {
            if (Thread.currentThread() == main && byTheApp()) {
                touched.add(what + " " + file);
            }
        }

        /** By itself: strict mode sees what it asks the framework for. Not to load classes, which are there when an app runs. */
        private boolean byTheApp() {
            for (StackTraceElement frame : new Throwable().getStackTrace()) {
                String name = frame.getClassName();
                if (frame.getMethodName().equals("loadClass")) {
                    return false;
                }
                boolean ofJava = name.matches("(java|javax|jdk|sun)\\..*");
                if (!ofJava && !name.equals(getClass().getName())) {
                    return name.startsWith("dev.oxbow.");
                }
            }
            return false;
        }

        @Override
        public void checkPermission(Permission permission) {}

        @Override
        public void checkPermission(Permission permission, Object context) {}

        @Override
        public void checkRead(String file) {
            note("read", file);
        }

        @Override
        public void checkWrite(String file) {
            note("write", file);
        }

        @Override
        public void checkDelete(String file) {
            note("delete", file);
        }
    }

    /** What an app must not do. */
    private static final class Careless {
        static void read(File file) throws Exception {
            new FileInputStream(file).close();
        }
    }

    @Before
    public void watch() {
        before = System.getSecurityManager();
        System.setSecurityManager(new Watch());
        StrictMode.setThreadPolicy(new StrictMode.ThreadPolicy.Builder().detectAll().penaltyDeath().build());
    }

    @After
    public void nothingIsLeft() throws Exception {
        StrictMode.setThreadPolicy(policyBefore);
        System.setSecurityManager(before);
        Screen.until("native objects are closed", () -> Oxbow.getLivingObjects() == 0);
    }

    /** Or the silence of the other tests would mean nothing. */
    @Test
    public void mistakesAreSeen() throws Exception {
        Careless.read(new File(System.getProperty("oxbow.model")));
        assertEquals(1, touched.size());
        assertThrows(RuntimeException.class, () -> StrictMode.noteSlowCall("a slow call"));
        Context context = RuntimeEnvironment.getApplication();
        assertThrows(
                RuntimeException.class,
                () -> context.getSharedPreferences("not loaded yet", Context.MODE_PRIVATE).getInt("a", 0));
    }

    @Test
    public void writingTouchesNoFile() throws Exception {
        ActivityController<MainActivity> controller = Robolectric.buildActivity(MainActivity.class).setup();
        EditText prompt = Screen.at(controller.get(), 0);
        Button button = Screen.at(controller.get(), 1, 0);
        TextView status = Screen.at(controller.get(), 2);
        TextView text = Screen.at(controller.get(), 3, 0);
        Screen.until("opened", () -> status.getText().toString().contains("parameters"));
        prompt.setText("And the river");
        button.performClick();
        Screen.until("some text", () -> text.getText().length() > 20);
        for (int setting = 1; setting <= 2; ++setting) {
            Button one = Screen.at(controller.get(), 1, setting);
            one.performClick();
        }
        controller.recreate();
        controller.pause().stop().saveInstanceState(new Bundle());
        controller.get().onTrimMemory(ComponentCallbacks2.TRIM_MEMORY_BACKGROUND);
        Screen.until("only the model is left", () -> Oxbow.getLivingObjects() == 1);
        controller.start().resume().pause().stop().destroy();
        assertTrue(touched.toString(), touched.isEmpty());
    }

    @Test
    public void measuringTouchesNoFile() throws Exception {
        ActivityController<MeasureActivity> controller = Robolectric.buildActivity(MeasureActivity.class).setup();
        controller.recreate();
        TextView words = Screen.at(controller.get(), 0, 0);
        Screen.until("it is over", () -> words.getText().toString().startsWith("Each dot"));
        controller.pause().stop().destroy();
        assertTrue(touched.toString(), touched.isEmpty());
    }
}
