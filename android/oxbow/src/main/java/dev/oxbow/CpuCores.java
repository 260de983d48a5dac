package dev.oxbow;

import androidx.annotation.WorkerThread;
import java.io.BufferedReader;
import java.io.File;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * Which cores of the processor are the fast ones, from the kernel's files: for {@link SessionOptions#cpuMask}. A mask has a
 * bit for each core; of more than 64 the first 64 are looked at.
 */
public final class CpuCores {
    private static final int MOST = Long.SIZE;

    private CpuCores() {}

    /**
     * The cores of all kinds but the slowest.
     *
     * @return a bit for each; all cores where they are alike, and 0, which chooses none, where the kernel does not tell
     */
    @WorkerThread
    public static long big() {
        return big(new File("/sys/devices/system/cpu"));
    }

    static long big(File folder) {
        // What the scheduler takes for a core's speed, else its highest clock.
        long[] speeds = read(folder, "cpu_capacity");
        if (Arrays.stream(speeds).allMatch(speed -> speed == 0)) {
            speeds = read(folder, "cpufreq/cpuinfo_max_freq");
        }
        long slowest = Arrays.stream(speeds).filter(speed -> speed > 0).min().orElse(0);
        long all = 0;
        long fast = 0;
        for (int core = 0; core < MOST; ++core) {
            all |= speeds[core] > 0 ? 1L << core : 0;
            fast |= speeds[core] > slowest ? 1L << core : 0;
        }
        return fast != 0 ? fast : all;
    }

    /** A number of every core; 0: unknown, or no such core. */
    private static long[] read(File folder, String name) {
        long[] numbers = new long[MOST];
        for (int core = 0; core < MOST; ++core) {
            numbers[core] = readNumber(new File(folder, "cpu" + core + "/" + name));
        }
        return numbers;
    }

    private static long readNumber(File file) {
        try (BufferedReader reader =
                new BufferedReader(new InputStreamReader(new FileInputStream(file), StandardCharsets.US_ASCII))) {
            String line = reader.readLine();
            return line == null ? 0 : Long.parseLong(line.trim());
        } catch (IOException | NumberFormatException e) {
            // Closed to apps on some phones.
            return 0;
        }
    }
}
