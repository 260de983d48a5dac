package dev.oxbow;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import org.junit.Rule;
import org.junit.Test;
import org.junit.rules.TemporaryFolder;

/** What is asked of a phone: its cores, its heat, its scheduler. The phone is made up. */
public class PhoneTest {
    /** Stands for android.content.Context. */
    public static final class Context {
        final Object service;

        Context(Object service) {
            this.service = service;
        }

        public Object getSystemService(String name) {
            return service.getClass().getSimpleName().toLowerCase().equals(name.replace("_", "")) ? service : null;
        }
    }

    /** android.os.PowerManager. */
    public static final class Power {
        public int getCurrentThermalStatus() {
            return 3;
        }

        public float getThermalHeadroom(int seconds) {
            return seconds / 20f;
        }
    }

    /** android.os.PerformanceHintManager. */
    public static final class PerformanceHint {
        int[] threads;
        long target;
        final List<Long> reports = new ArrayList<>();
        boolean closed;

        public Object createHintSession(int[] of, long targetNanoseconds) {
            threads = of;
            target = targetNanoseconds;
            return new HintSession(this);
        }
    }

    /** android.os.PerformanceHintManager.Session. */
    public static final class HintSession {
        private final PerformanceHint hints;

        HintSession(PerformanceHint hints) {
            this.hints = hints;
        }

        public void reportActualWorkDuration(long nanoseconds) {
            hints.reports.add(nanoseconds);
        }

        public void close() {
            hints.closed = true;
        }
    }

    @Rule public final TemporaryFolder temporary = new TemporaryFolder();

    private void core(int number, String file, String text) throws IOException {
        File folder = new File(temporary.getRoot(), "cpu" + number + "/cpufreq");
        assertTrue(folder.isDirectory() || folder.mkdirs());
        Files.write(
                new File(folder.getParentFile(), file).toPath(), (text + "\n").getBytes(StandardCharsets.US_ASCII));
    }

    @Test
    public void bigCoresAreAllButTheSlowest() throws IOException {
        assertEquals("nothing is known", 0, CpuCores.big(temporary.getRoot()));
        for (int i = 0; i < 8; ++i) {
            core(i, "cpufreq/cpuinfo_max_freq", i < 4 ? "1800000" : i < 7 ? "2400000" : "2800000");
        }
        assertEquals(0xf0, CpuCores.big(temporary.getRoot()));
        // A mid core of a lower clock may be worth more than a little one of a higher: the scheduler knows.
        for (int i = 0; i < 8; ++i) {
            core(i, "cpu_capacity", i < 6 ? "250" : "1024");
        }
        assertEquals(0xc0, CpuCores.big(temporary.getRoot()));
        for (int i = 0; i < 8; ++i) {
            core(i, "cpu_capacity", "1024");
        }
        assertEquals("all alike", 0xff, CpuCores.big(temporary.getRoot()));
        core(0, "cpu_capacity", "nonsense");
        assertEquals(0xfe, CpuCores.big(temporary.getRoot()));
        CpuCores.big();
    }

    @Test
    public void heatIsToldWhereThePhoneTells() {
        Context phone = new Context(new Power());
        assertEquals(3, Thermal.getStatus(phone));
        assertEquals(0.5f, Thermal.getHeadroom(phone, 10), 0f);
        Context old = new Context(new Object());
        assertEquals(Thermal.UNKNOWN, Thermal.getStatus(old));
        assertTrue(Float.isNaN(Thermal.getHeadroom(old, 10)));
        assertEquals(Thermal.UNKNOWN, Thermal.getStatus(null));
    }

    @Test
    public void hintsNameTheThreadsThatWereStarted() throws Exception {
        PerformanceHint manager = new PerformanceHint();
        Thread[] started = new Thread[1];
        Object never = new Object();
        try (PerformanceHints hints =
                PerformanceHints.create(
                        new Context(manager),
                        1000,
                        () -> {
                            int before = PerformanceHints.threads().size();
                            started[0] = new Thread(() -> waitFor(never));
                            started[0].start();
                            while (PerformanceHints.threads().size() == before) {
                                Thread.yield();
                            }
                        })) {
            assertTrue(hints.isSupported());
            assertTrue(manager.threads.length >= 1);
            assertEquals(1000, manager.target);
            hints.report(900);
            hints.report(0);
            assertArrayEquals(new Object[] {900L}, manager.reports.toArray());
        } finally {
            started[0].interrupt();
            started[0].join();
        }
        assertTrue(manager.closed);
    }

    private static void waitFor(Object object) {
        synchronized (object) {
            try {
                object.wait();
            } catch (InterruptedException e) {
                // The end of the test.
            }
        }
    }

    @Test
    public void hintsDoNothingWhereThereAreNone() {
        try (PerformanceHints hints = PerformanceHints.create(null, 1, () -> {})) {
            assertFalse(hints.isSupported());
            hints.report(5);
        }
        Fixture.refused(OxbowException.INVALID_ARGUMENT, () -> PerformanceHints.create(null, 0, () -> {}));
    }
}
