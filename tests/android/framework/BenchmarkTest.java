package dev.oxbow.framework;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;

import android.content.Intent;
import android.widget.TextView;
import dev.oxbow.benchmark.BenchmarkActivity;
import java.io.File;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.List;
import org.json.JSONObject;
import org.junit.After;
import org.junit.Before;
import org.junit.Rule;
import org.junit.Test;
import org.junit.rules.TemporaryFolder;
import org.junit.runner.RunWith;
import org.robolectric.Robolectric;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.android.controller.ActivityController;

/** The benchmark app with a program that only tells that it was started. */
@RunWith(RobolectricTestRunner.class)
public class BenchmarkTest {
    @Rule public final TemporaryFolder folder = new TemporaryFolder();

    private File started;
    private ActivityController<BenchmarkActivity> controller;

    @Before
    public void placeProgram() throws Exception {
        started = folder.newFile("started");
        RuntimeEnvironment.getApplication().getApplicationInfo().nativeLibraryDir = folder.getRoot().getPath();
    }

    private void program(String rest) throws Exception {
        File program = new File(folder.getRoot(), "liboxbow_cli.so");
        String script = "#!/bin/sh\necho $$ >> " + started + "\n" + rest + "\n";
        Files.write(program.toPath(), script.getBytes(StandardCharsets.UTF_8));
        assertTrue(program.setExecutable(true));
        Intent intent = new Intent().putExtra("model", "m.oxb").putExtra("arguments", "--decode 5");
        controller = Robolectric.buildActivity(BenchmarkActivity.class, intent).setup();
    }

    private List<String> starts() throws Exception {
        return Files.readAllLines(started.toPath());
    }

    private String text(int part) {
        TextView view = Screen.at(controller.get(), 0, part);
        return view.getText().toString();
    }

    private String words() {
        return text(0);
    }

    private String rest() {
        return text(1);
    }

    @After
    public void close() {
        if (!controller.get().isDestroyed()) {
            controller.pause().stop().destroy();
        }
    }

    @Test
    public void aTurnedScreenMeasuresOnce() throws Exception {
        program("sleep 0.5\necho \"{\\\"arguments\\\":\\\"$*\\\",\\\"decode\\\":{\\\"median_seconds\\\":0.002,\\\"tokens_per_second\\\":500}}\"");
        Screen.until("it has begun", () -> starts().size() == 1);
        controller.recreate();
        controller.recreate();
        Screen.until("it is over", () -> rest().contains("phone_after"));
        assertTrue(rest(), rest().contains("bench m.oxb --json --decode 5"));
        assertTrue(words(), words().startsWith("A token: 2.0 ms, 500 tokens/s"));
        assertEquals(1, starts().size());
        File result = new File(controller.get().getExternalFilesDir(null), "result.json");
        String written = new String(Files.readAllBytes(result.toPath()), StandardCharsets.UTF_8);
        assertEquals(new JSONObject(written).toString(), new JSONObject(rest()).toString());
    }

    @Test
    public void aClosedAppEndsTheProgram() throws Exception {
        program("exec sleep 1000");
        Screen.until("it has begun", () -> starts().size() == 1);
        File process = new File("/proc/" + starts().get(0));
        assertTrue(process.exists());
        controller.pause().stop().destroy();
        Screen.until("it is gone", () -> !process.exists());
    }

    @Test
    public void aProgramThatFailsIsShown() throws Exception {
        program("echo no such file >&2; exit 3");
        Screen.until("it is over", () -> words().contains("exit code 3"));
        assertTrue(words(), words().contains("no such file"));
        assertFalse(rest().contains("phone_after"));
    }
}
