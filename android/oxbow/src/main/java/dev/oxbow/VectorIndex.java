package dev.oxbow;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Objects;

/**
 * The nearest vectors of a table, exactly, in memory of the caller: a direct buffer, usually a mapped file, that begins at
 * an address aligned to 64. Vectors are kept as int8 with a scale each; results are the same bits on every machine.
 *
 * <p>It holds no native memory, so there is nothing to close. Any threads may search it at once while none writes it.
 */
public final class VectorIndex {
    /** Numbers of a vector at most. */
    public static final int MAX_WIDTH = 2048;
    /** Results of a query at most. */
    public static final int MAX_RESULTS = 1024;

    // Places in the array of the native code.
    private static final int COUNT = 0;
    private static final int WIDTH = 1;
    private static final int METRIC = 2;
    private static final int INFO_COUNT = 3;

    private final ByteBuffer table;
    private final long[] info;

    private VectorIndex(ByteBuffer table) {
        Oxbow.load();
        this.table = table.duplicate();
        info = new long[INFO_COUNT];
        readInfo(table, table.position(), table.remaining(), info);
    }

    /**
     * What a table takes.
     *
     * @param count vectors
     * @param width numbers of a vector
     * @param metric how nearness is measured
     * @return its bytes
     */
    public static long getBytes(long count, int width, Metric metric) {
        Oxbow.load();
        return bytes(count, width, metric.ordinal());
    }

    /**
     * Makes an empty table, all of whose vectors are zeros.
     *
     * @param memory of as many bytes as {@link #getBytes} tells
     * @param count vectors
     * @param width numbers of a vector
     * @param metric how nearness is measured
     * @return the table
     */
    public static VectorIndex create(ByteBuffer memory, long count, int width, Metric metric) {
        Oxbow.load();
        DirectBuffers.checkWritable(memory, "the memory of the index");
        create(memory, memory.position(), memory.remaining(), count, width, metric.ordinal());
        return new VectorIndex(memory);
    }

    /**
     * A table that was made before, such as a mapped file. A broken one is refused.
     *
     * @param table its bytes
     * @return the table
     */
    public static VectorIndex open(ByteBuffer table) {
        DirectBuffers.checkReadable(table, "the index");
        return new VectorIndex(table);
    }

    /** {@return vectors in the table} */
    public long getCount() {
        return info[COUNT];
    }

    /** {@return numbers of a vector} */
    public int getWidth() {
        return (int) info[WIDTH];
    }

    /** {@return how nearness is measured} */
    public Metric getMetric() {
        return Metric.of(info[METRIC]);
    }

    /**
     * Sets vectors.
     *
     * @param first the number of the first
     * @param vectors as many as there are in the array, one behind the other
     */
    public void put(long first, float... vectors) {
        DirectBuffers.checkWritable(table, "the index");
        put(table, table.position(), table.remaining(), first, Objects.requireNonNull(vectors));
    }

    /**
     * The nearest of all vectors.
     *
     * @param query as wide as they are
     * @param k how many
     * @return the nearest first
     */
    public Hits search(float[] query, int k) {
        return search(query, 0, getCount(), k);
    }

    /**
     * The nearest of some vectors: threads may share the work.
     *
     * @param query as wide as they are
     * @param first the number of the first
     * @param count how many are looked at
     * @param k how many are wanted
     * @return the nearest first
     */
    public Hits search(float[] query, long first, long count, int k) {
        if (k < 1 || k > MAX_RESULTS) {
            throw OxbowException.invalid(k + " results; there are 1 to " + MAX_RESULTS);
        }
        long[] ids = new long[k];
        float[] scores = new float[k];
        search(table, table.position(), table.remaining(), Objects.requireNonNull(query), first, count, ids, scores);
        int found = 0;
        while (found < k && ids[found] >= 0) {
            ++found;
        }
        return new Hits(Arrays.copyOf(ids, found), Arrays.copyOf(scores, found));
    }

    /** What a search found, the nearest first. */
    public static final class Hits {
        private final long[] ids;
        private final float[] scores;

        Hits(long[] ids, float[] scores) {
            this.ids = ids;
            this.scores = scores;
        }

        /** {@return as many as were wanted, or fewer when there are no more vectors} */
        public int size() {
            return ids.length;
        }

        /**
         * Which vector a hit is.
         *
         * @param index 0: the nearest
         * @return its number
         */
        public long getId(int index) {
            return ids[index];
        }

        /**
         * How near a hit is.
         *
         * @param index 0: the nearest
         * @return the nearness, by {@link VectorIndex#getMetric}
         */
        public float getScore(int index) {
            return scores[index];
        }
    }

    private static native long bytes(long count, int width, int metric);

    private static native void create(
            ByteBuffer memory, int position, int length, long count, int width, int metric);

    private static native void readInfo(ByteBuffer table, int position, int length, long[] info);

    private static native void put(ByteBuffer table, int position, int length, long first, float[] vectors);

    private static native void search(
            ByteBuffer table,
            int position,
            int length,
            float[] query,
            long first,
            long count,
            long[] ids,
            float[] scores);
}
