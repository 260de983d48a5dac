package dev.oxbow.framework;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertSame;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import android.content.Context;
import android.content.res.AssetFileDescriptor;
import android.net.Uri;
import android.os.Build;
import android.os.Handler;
import android.os.HandlerThread;
import android.os.ParcelFileDescriptor;
import android.os.PowerManager;
import dev.oxbow.AndroidFiles;
import dev.oxbow.Cancellation;
import dev.oxbow.Generator;
import dev.oxbow.GeneratorOptions;
import dev.oxbow.KeptText;
import dev.oxbow.Model;
import dev.oxbow.OpenOptions;
import dev.oxbow.Oxbow;
import dev.oxbow.PerformanceHints;
import dev.oxbow.Session;
import dev.oxbow.SessionOptions;
import dev.oxbow.Thermal;
import java.io.File;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.After;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.shadow.api.Shadow;
import org.robolectric.shadows.ShadowPowerManager;

/** The library on Android's own classes: descriptors, threads with a looper, services. The model is in an APK. */
@RunWith(RobolectricTestRunner.class)
public class LibraryTest {
    private static final int PAGE = 4096;

    private final Context context = RuntimeEnvironment.getApplication();

    @After
    public void nothingIsLeft() {
        assertEquals(0, Oxbow.getLivingObjects());
    }

    private static String text(Model model) {
        try (Session session = Session.create(model);
                Generator generator = Generator.create(session, new GeneratorOptions().maxTokens(50))) {
            return generator.generateText("And the river");
        }
    }

    private static String expected() {
        try (Model model = Model.open(System.getProperty("oxbow.model"))) {
            return text(model);
        }
    }

    /** Not a copy of it: the kernel tells which part of which file is mapped. */
    @Test
    public void anAssetIsMappedWhereItLiesInTheApk() throws Exception {
        try (AssetFileDescriptor asset = context.getAssets().openFd("model.oxb")) {
            long page = asset.getStartOffset() / PAGE * PAGE;
            assertTrue("not at the beginning of the APK", page > 0);
            String place = String.format(" %08x ", page);
            assertFalse(mapped(place));
            try (Model model = AndroidFiles.open(asset)) {
                assertEquals(asset.getLength(), model.getFileBytes());
                assertTrue("mapped at" + place, mapped(place));
                asset.close();
                assertEquals(expected(), text(model));
            }
            assertFalse(mapped(place));
        }
    }

    private static boolean mapped(String place) throws Exception {
        String maps = new String(Files.readAllBytes(new File("/proc/self/maps").toPath()), StandardCharsets.UTF_8);
        return maps.lines().anyMatch(line -> line.contains(place) && line.endsWith("framework.apk"));
    }

    @Test
    public void whatAUriStandsForIsOpened() throws Exception {
        Uri uri = Uri.fromFile(new File(System.getProperty("oxbow.model")));
        try (ParcelFileDescriptor file = context.getContentResolver().openFileDescriptor(uri, "r");
                Model model = AndroidFiles.open(file)) {
            assertEquals(expected(), text(model));
        }
        // Of unknown length, which is that of the file.
        try (AssetFileDescriptor file = context.getContentResolver().openAssetFileDescriptor(uri, "r");
                Model model = AndroidFiles.open(file)) {
            assertEquals(AssetFileDescriptor.UNKNOWN_LENGTH, file.getDeclaredLength());
            assertEquals(expected(), text(model));
        }
    }

    private static final class Thrown extends RuntimeException {
        private static final long serialVersionUID = 1L;
    }

    /** On a thread with a looper, as apps have them. */
    private static <T> T onWorker(java.util.concurrent.Callable<T> work) throws Exception {
        HandlerThread thread = new HandlerThread("worker");
        thread.start();
        CompletableFuture<T> result = new CompletableFuture<>();
        // Robolectric runs the loopers of other threads on these threads.
        new Handler(thread.getLooper())
                .post(
                        () -> {
                            try {
                                result.complete(work.call());
                            } catch (Throwable e) {
                                result.completeExceptionally(e);
                            }
                        });
        try {
            return result.get(60, TimeUnit.SECONDS);
        } finally {
            thread.quit();
        }
    }

    @Test
    public void anExceptionOfAListenerComesOutAndTheTextGoesOn() throws Exception {
        String expected = expected();
        onWorker(
                () -> {
                    try (Model model = Model.open(System.getProperty("oxbow.model"));
                            Session session = Session.create(model);
                            Generator generator = Generator.create(session, new GeneratorOptions().maxTokens(50))) {
                        Thrown thrown = new Thrown();
                        for (int i = 0; i < 20; ++i) {
                            AtomicInteger pieces = new AtomicInteger(i);
                            Thrown out =
                                    assertThrows(
                                            Thrown.class,
                                            () ->
                                                    generator.generate(
                                                            "And the river",
                                                            piece -> {
                                                                if (pieces.getAndDecrement() == 0) {
                                                                    throw thrown;
                                                                }
                                                                return true;
                                                            }));
                            assertSame(thrown, out);
                            generator.reset();
                        }
                        assertEquals(expected, generator.generateText("And the river"));
                    }
                    return null;
                });
    }

    @Test
    public void anExceptionOfALogIsDropped() throws Exception {
        AtomicInteger lines = new AtomicInteger();
        OpenOptions options =
                new OpenOptions()
                        .log(
                                (level, line) -> {
                                    lines.incrementAndGet();
                                    throw new Thrown();
                                });
        String written =
                onWorker(
                        () -> {
                            try (Model model = Model.open(System.getProperty("oxbow.model"), options)) {
                                return text(model);
                            }
                        });
        assertEquals(expected(), written);
        assertTrue(lines.get() > 0);
    }

    @Test
    public void aTextIsPutAsideWhenTheSystemAsks() throws Exception {
        File state = new File(context.getNoBackupFilesDir(), "kept.state");
        try (Model model = Model.open(System.getProperty("oxbow.model"));
                KeptText kept = new KeptText(model, new SessionOptions(), new GeneratorOptions().maxTokens(25), state)) {
            String first = kept.generator().generateText("And the river");
            assertFalse(kept.onTrimMemory(android.content.ComponentCallbacks2.TRIM_MEMORY_UI_HIDDEN));
            assertTrue(kept.onTrimMemory(android.content.ComponentCallbacks2.TRIM_MEMORY_BACKGROUND));
            assertEquals("only the model", 1, Oxbow.getLivingObjects());
            StringBuilder second = new StringBuilder();
            kept.generator()
                    .generate(new int[0], piece -> second.append(piece).length() > 0, new Cancellation());
            assertEquals(expected(), first + second);
        }
    }

    @Test
    public void theServicesOfThePhoneAreFound() throws Exception {
        int expected = Thermal.UNKNOWN;
        if (Build.VERSION.SDK_INT >= 29) {
            ShadowPowerManager power = Shadow.extract(context.getSystemService(Context.POWER_SERVICE));
            power.setCurrentThermalStatus(PowerManager.THERMAL_STATUS_SEVERE);
            expected = 3;
        }
        assertEquals(expected, Thermal.getStatus(context));
        // Only what a phone has can answer; here nothing may fail.
        Thermal.getHeadroom(context, 10);
        boolean[] started = {false};
        try (PerformanceHints hints = PerformanceHints.create(context, 50_000_000L, () -> started[0] = true)) {
            hints.report(40_000_000L);
        }
        assertTrue(started[0]);
    }
}
