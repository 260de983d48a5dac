package dev.oxbow.framework;

import static org.junit.Assert.assertTrue;

import android.app.Activity;
import android.content.Intent;
import android.graphics.Bitmap;
import android.graphics.Canvas;
import android.graphics.Color;
import android.graphics.Rect;
import android.view.View;
import android.view.ViewGroup;
import android.widget.Button;
import android.widget.EditText;
import android.widget.TextView;
import dev.oxbow.Oxbow;
import dev.oxbow.benchmark.BenchmarkActivity;
import dev.oxbow.sample.MainActivity;
import dev.oxbow.sample.MeasureActivity;
import java.io.File;
import java.io.FileOutputStream;
import java.nio.file.Files;
import java.nio.file.Paths;
import org.junit.After;
import org.junit.Rule;
import org.junit.Test;
import org.junit.rules.TemporaryFolder;
import org.junit.runner.RunWith;
import org.robolectric.Robolectric;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.android.controller.ActivityController;
import org.robolectric.annotation.Config;
import org.robolectric.annotation.GraphicsMode;

/**
 * Each screen of both apps drawn as a phone would, light, dark, with large text and from right to left, into the folder
 * {@code oxbow.pictures}. A person looks at them; the test sees that there is something, and that it fits.
 */
@RunWith(RobolectricTestRunner.class)
@GraphicsMode(GraphicsMode.Mode.NATIVE)
public class ScreensTest {
    private static final String PHONE = "w360dp-h640dp-xhdpi";

    @Rule public final TemporaryFolder folder = new TemporaryFolder();

    private ActivityController<? extends Activity> controller;

    @After
    public void close() throws Exception {
        controller.pause().stop().destroy();
        Screen.until("native objects are closed", () -> Oxbow.getLivingObjects() == 0);
    }

    private void text(String name) throws Exception {
        ActivityController<MainActivity> main = Robolectric.buildActivity(MainActivity.class);
        controller = main;
        main.setup();
        EditText prompt = Screen.at(main.get(), 0);
        Button button = Screen.at(main.get(), 1, 0);
        TextView status = Screen.at(main.get(), 2);
        Screen.until("opened", () -> status.getText().toString().contains("parameters"));
        prompt.setText("And the river");
        button.performClick();
        TextView text = Screen.at(main.get(), 3, 0);
        Screen.until("a page of text", () -> text.getText().length() > 600);
        button.performClick();
        Screen.until("it stopped", () -> button.getText().toString().equals("Write"));
        Screen.idle();
        draw(name);
    }

    private void measure(String name) throws Exception {
        ActivityController<MeasureActivity> measuring = Robolectric.buildActivity(MeasureActivity.class);
        controller = measuring;
        measuring.setup();
        TextView words = Screen.at(measuring.get(), 0, 0);
        Screen.until("it is over", () -> words.getText().toString().startsWith("Each dot"));
        Screen.idle();
        draw(name);
    }

    /** With the program itself, as it is unpacked on a phone. */
    private void benchmark(String name) throws Exception {
        Files.createSymbolicLink(
                folder.getRoot().toPath().resolve("liboxbow_cli.so"), Paths.get(System.getProperty("oxbow.program")));
        RuntimeEnvironment.getApplication().getApplicationInfo().nativeLibraryDir = folder.getRoot().getPath();
        Intent intent =
                new Intent()
                        .putExtra("model", System.getProperty("oxbow.model"))
                        .putExtra("arguments", "--prefill 64 --decode 200 --max-seconds 1");
        ActivityController<BenchmarkActivity> measuring = Robolectric.buildActivity(BenchmarkActivity.class, intent);
        controller = measuring;
        measuring.setup();
        TextView words = Screen.at(measuring.get(), 0, 0);
        Screen.until("it is over", () -> !words.getText().toString().equals("Measuring"));
        assertTrue(words.getText().toString(), words.getText().toString().contains("A token: "));
        Screen.idle();
        draw(name);
    }

    /** Each button is there as a whole, with its word on one line. */
    private static void checkButtons(String name, View view) {
        if (view instanceof Button) {
            Button button = (Button) view;
            Rect seen = new Rect();
            assertTrue(name + ": " + button.getText() + " is not on the screen", button.getGlobalVisibleRect(seen));
            boolean whole = seen.width() == button.getWidth() && seen.height() == button.getHeight();
            assertTrue(name + ": " + button.getText() + " is cut", whole && button.getLineCount() == 1);
        }
        if (view instanceof ViewGroup) {
            ViewGroup group = (ViewGroup) view;
            for (int i = 0; i < group.getChildCount(); ++i) {
                checkButtons(name, group.getChildAt(i));
            }
        }
    }

    private void draw(String name) throws Exception {
        View view = controller.get().getWindow().getDecorView();
        checkButtons(name, view);
        Bitmap bitmap = Bitmap.createBitmap(view.getWidth(), view.getHeight(), Bitmap.Config.ARGB_8888);
        view.draw(new Canvas(bitmap));
        int other = 0;
        int background = bitmap.getPixel(view.getWidth() - 1, view.getHeight() - 1);
        for (int y = 0; y < bitmap.getHeight(); y += 3) {
            for (int x = 0; x < bitmap.getWidth(); x += 3) {
                other += bitmap.getPixel(x, y) != background ? 1 : 0;
            }
        }
        assertTrue(name + " is empty", other > 500);
        boolean dark = Color.red(background) + Color.green(background) + Color.blue(background) < 3 * 128;
        assertTrue(name + " has a background of the other kind", dark == name.endsWith("-dark"));
        File folder = new File(System.getProperty("oxbow.pictures"));
        try (FileOutputStream out = new FileOutputStream(new File(folder, name + ".png"))) {
            assertTrue(bitmap.compress(Bitmap.CompressFormat.PNG, 100, out));
        }
    }

    @Test
    @Config(qualifiers = PHONE)
    public void textInLight() throws Exception {
        text("android-text-light");
    }

    @Test
    @Config(qualifiers = "w360dp-h640dp-night-xhdpi")
    public void textInDark() throws Exception {
        text("android-text-dark");
    }

    @Test
    @Config(qualifiers = PHONE)
    public void measuringInLight() throws Exception {
        measure("android-measure-light");
    }

    @Test
    @Config(qualifiers = "w360dp-h640dp-night-xhdpi")
    public void measuringInDark() throws Exception {
        measure("android-measure-dark");
    }

    @Test
    @Config(qualifiers = PHONE)
    public void theBenchmarkInLight() throws Exception {
        benchmark("android-benchmark-light");
    }

    @Test
    @Config(qualifiers = "w360dp-h640dp-night-xhdpi")
    public void theBenchmarkInDark() throws Exception {
        benchmark("android-benchmark-dark");
    }

    @Test
    @Config(qualifiers = PHONE, fontScale = 2f)
    public void largeText() throws Exception {
        text("android-text-large");
    }

    @Test
    @Config(qualifiers = "ar-ldrtl-w360dp-h640dp-xhdpi")
    public void fromRightToLeft() throws Exception {
        text("android-text-rtl");
    }
}
