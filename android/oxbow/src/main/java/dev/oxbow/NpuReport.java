package dev.oxbow;

import org.jspecify.annotations.Nullable;

/** What an accelerator has done for a session since it was created; see {@link Session#getNpuReport}. */
public final class NpuReport {
    // Places in the array of the native code.
    private static final int LAYERS = 0;
    private static final int DEVICE_BYTES = 1;
    private static final int FAST_BYTES = 2;
    private static final int HOST_BYTES = 3;
    private static final int RUNS = 4;
    private static final int ROWS = 5;
    private static final int CPU_RUNS = 6;
    private static final int NANOSECONDS = 7;
    private static final int COMPARED = 8;
    private static final int DIFFERENT = 9;
    private static final int LARGEST_STEP = 10;
    static final int COUNT = 11;

    private final long[] numbers;
    private final float largestDifference;
    private final String failure;

    NpuReport(long[] numbers, float largestDifference, String failure) {
        this.numbers = numbers;
        this.largestDifference = largestDifference;
        this.failure = failure;
    }

    /** {@return layers that the accelerator has} */
    public int getLayers() {
        return (int) numbers[LAYERS];
    }

    /** {@return what they need: memory of the device} */
    public long getDeviceBytes() {
        return numbers[DEVICE_BYTES];
    }

    /** {@return of the device's memory, the fast kind} */
    public long getFastBytes() {
        return numbers[FAST_BYTES];
    }

    /** {@return what they need: memory of the host} */
    public long getHostBytes() {
        return numbers[HOST_BYTES];
    }

    /** {@return runs of layers there} */
    public long getRuns() {
        return numbers[RUNS];
    }

    /** {@return rows in those runs} */
    public long getRows() {
        return numbers[ROWS];
    }

    /** {@return runs of those layers that the CPU made: few rows, or a failure} */
    public long getCpuRuns() {
        return numbers[CPU_RUNS];
    }

    /** {@return time of the runs there} */
    public long getNanoseconds() {
        return numbers[NANOSECONDS];
    }

    /** {@return in shadow mode: numbers compared} */
    public long getCompared() {
        return numbers[COMPARED];
    }

    /** {@return in shadow mode: how many differ} */
    public long getDifferent() {
        return numbers[DIFFERENT];
    }

    /** {@return in shadow mode: the step of the largest difference} */
    public int getLargestStep() {
        return (int) numbers[LARGEST_STEP];
    }

    /** {@return in shadow mode: the largest difference} */
    public float getLargestDifference() {
        return largestDifference;
    }

    /**
     * {@return null, or how the plug-in has failed or broken a promise} That layer, and all since, were computed by the
     * CPU: results and states are whole.
     */
    public @Nullable String getFailure() {
        return failure;
    }
}
