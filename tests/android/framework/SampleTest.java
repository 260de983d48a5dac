package dev.oxbow.framework;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotEquals;
import static org.junit.Assert.assertTrue;

import android.content.ComponentCallbacks2;
import android.os.Bundle;
import android.text.Editable;
import android.text.TextWatcher;
import android.widget.Button;
import android.widget.EditText;
import android.widget.TextView;
import dev.oxbow.Generator;
import dev.oxbow.GeneratorOptions;
import dev.oxbow.Model;
import dev.oxbow.Oxbow;
import dev.oxbow.Session;
import dev.oxbow.sample.MainActivity;
import dev.oxbow.sample.MeasureActivity;
import java.io.File;
import java.nio.file.Files;
import org.junit.After;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.Robolectric;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.android.controller.ActivityController;
import org.robolectric.shadow.api.Shadow;
import org.robolectric.shadows.ShadowApplication;

/** The sample app on the framework: turned, in the background, short of memory, closed. The model is in an APK. */
@RunWith(RobolectricTestRunner.class)
public class SampleTest {
    private static final String PROMPT = "And the river";

    private ActivityController<MainActivity> controller = Robolectric.buildActivity(MainActivity.class);

    private EditText prompt() {
        return Screen.at(controller.get(), 0);
    }

    private Button button() {
        return button(0);
    }

    /** 0: write or stop, 1: threads, 2: backend, 3: measure. */
    private Button button(int index) {
        return Screen.at(controller.get(), 1, index);
    }

    private String status() {
        TextView view = Screen.at(controller.get(), 2);
        return view.getText().toString();
    }

    private TextView textView() {
        return Screen.at(controller.get(), 3, 0);
    }

    private String text() {
        return textView().getText().toString();
    }

    private void open() throws Exception {
        controller.setup();
        Screen.until("opened", () -> status().contains("parameters"));
    }

    private void write() throws Exception {
        prompt().setText(PROMPT);
        button().performClick();
        Screen.until("it writes", () -> button().getText().toString().equals("Stop"));
        Screen.until("some text", () -> text().length() > 20);
    }

    private void finish() throws Exception {
        Screen.idle();
        Screen.until("the end", () -> button().getText().toString().equals("Write"));
    }

    /** What it must write, however often it is interrupted. */
    private static String expected() {
        try (Model model = Model.open(System.getProperty("oxbow.model"));
                Session session = Session.create(model);
                Generator generator = Generator.create(session, new GeneratorOptions().maxTokens(20000))) {
            return generator.generateText(PROMPT);
        }
    }

    @After
    public void nothingIsLeft() throws Exception {
        if (controller != null && !controller.get().isDestroyed()) {
            controller.pause().stop().destroy();
        }
        Screen.until("native objects are closed", () -> Oxbow.getLivingObjects() == 0);
    }

    @Test
    public void aTextIsWrittenAndStopped() throws Exception {
        open();
        write();
        button().performClick();
        finish();
        assertTrue(status(), status().startsWith("CANCELLED"));
        String before = text();
        Thread.sleep(50);
        Screen.idle();
        assertEquals(before, text());
    }

    @Test
    public void aTurnedScreenGoesOnWithPromptAndText() throws Exception {
        open();
        write();
        String before = text();
        for (int i = 0; i < 3; ++i) {
            controller.recreate();
            assertEquals(PROMPT, prompt().getText().toString());
            assertTrue(text().startsWith(before));
        }
        assertEquals("one model, session and generator", 3, Oxbow.getLivingObjects());
        finish();
        assertEquals(expected(), text());
        assertTrue(status(), status().startsWith("MAX_TOKENS"));
    }

    @Test
    public void nothingIsWrittenInTheBackground() throws Exception {
        open();
        write();
        controller.pause().stop();
        Screen.until("paused", () -> button().getText().toString().equals("Write"));
        assertTrue(status(), status().startsWith("Paused"));
        String before = text();
        Thread.sleep(100);
        Screen.idle();
        assertEquals(before, text());
        controller.start().resume();
        finish();
        assertEquals(expected(), text());
    }

    @Test
    public void memoryIsGivenBackAndTheTextGoesOn() throws Exception {
        open();
        write();
        controller.pause().stop();
        controller.get().onTrimMemory(ComponentCallbacks2.TRIM_MEMORY_BACKGROUND);
        Screen.until("only the model is left", () -> Oxbow.getLivingObjects() == 1);
        controller.start().resume();
        finish();
        assertEquals(expected(), text());
    }

    /** However many pieces came: one frame, one change. */
    @Test
    public void piecesAreShownOncePerFrame() throws Exception {
        open();
        int[] changes = {0};
        textView()
                .addTextChangedListener(
                        new TextWatcher() {
                            @Override
                            public void beforeTextChanged(CharSequence text, int start, int count, int after) {}

                            @Override
                            public void onTextChanged(CharSequence text, int start, int before, int count) {}

                            @Override
                            public void afterTextChanged(Editable text) {
                                ++changes[0];
                            }
                        });
        prompt().setText(PROMPT);
        button().performClick();
        Thread.sleep(500);
        Screen.idle();
        assertFalse(text().isEmpty());
        // A piece is a character here.
        assertTrue(changes[0] + " changes of " + text().length(), changes[0] < text().length() / 20);
        finish();
    }

    @Test
    public void aProcessThatWasKilledShowsPromptAndText() throws Exception {
        open();
        write();
        Bundle saved = new Bundle();
        controller.pause().stop().saveInstanceState(saved);
        String before = text();
        controller.destroy();
        Screen.until("the process is over", () -> Oxbow.getLivingObjects() == 0);
        controller = Robolectric.buildActivity(MainActivity.class).setup(saved);
        assertEquals(PROMPT, prompt().getText().toString());
        assertTrue(text().startsWith(before.substring(0, 20)));
        finish();
        assertEquals(expected(), text());
    }

    /** The state of another model, say after an update of the app. */
    @Test
    public void aTextThatCannotGoOnStaysAsItWas() throws Exception {
        open();
        write();
        Bundle saved = new Bundle();
        controller.pause().stop().saveInstanceState(saved);
        controller.destroy();
        Screen.until("the process is over", () -> Oxbow.getLivingObjects() == 0);
        File state = new File(controller.get().getNoBackupFilesDir(), "stream.state");
        assertTrue(state.exists());
        Files.write(state.toPath(), new byte[1000]);
        controller = Robolectric.buildActivity(MainActivity.class).setup(saved);
        Screen.until("it is told", () -> status().contains("state"));
        assertEquals("Write", button().getText().toString());
        write();
        finish();
        assertEquals(expected(), text());
    }

    @Test
    public void otherThreadsGoOnWithTheSameText() throws Exception {
        open();
        write();
        String before = button(1).getText().toString();
        button(1).performClick();
        assertNotEquals(before, button(1).getText().toString());
        Screen.until("the end", () -> status().startsWith("MAX_TOKENS"));
        assertEquals(expected(), text());
        button(2).performClick();
        assertFalse(button(2).getText().toString().equals("AUTO"));
        controller.recreate();
        assertFalse("settings are kept", button(2).getText().toString().equals("AUTO"));
    }

    @Test
    public void theSecondScreenIsOpened() throws Exception {
        open();
        button(3).performClick();
        ShadowApplication application = Shadow.extract(RuntimeEnvironment.getApplication());
        String next = application.getNextStartedActivity().toString();
        assertTrue(next, next.contains(MeasureActivity.class.getSimpleName()));
    }

    @Test
    public void twoHundredActivitiesLeaveNothing() throws Exception {
        for (int i = 0; i < 200; ++i) {
            controller = Robolectric.buildActivity(MainActivity.class).setup();
            if (i % 2 == 0) {
                button().performClick();
            }
            controller.pause().stop().destroy();
        }
        Screen.until("all are closed", () -> Oxbow.getLivingObjects() == 0);
    }
}
