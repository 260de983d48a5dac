package dev.oxbow;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.nio.ByteBuffer;
import java.util.Random;
import org.junit.Test;

public class VectorIndexTest extends Fixture {
    private static final int COUNT = 100;
    private static final int WIDTH = 48;

    private static float[] vectors(int count) {
        Random random = new Random(5);
        float[] values = new float[count * WIDTH];
        for (int i = 0; i < values.length; ++i) {
            values[i] = random.nextFloat() - 0.5f;
        }
        return values;
    }

    private static float[] row(float[] all, int index) {
        return java.util.Arrays.copyOfRange(all, index * WIDTH, (index + 1) * WIDTH);
    }

    @Test
    public void aVectorFindsItself() {
        float[] all = vectors(COUNT);
        for (Metric metric : new Metric[] {Metric.DOT, Metric.L2}) {
            ByteBuffer memory = DirectBuffers.allocate((int) VectorIndex.getBytes(COUNT, WIDTH, metric));
            VectorIndex index = VectorIndex.create(memory, COUNT, WIDTH, metric);
            index.put(0, java.util.Arrays.copyOf(all, 60 * WIDTH));
            index.put(60, java.util.Arrays.copyOfRange(all, 60 * WIDTH, COUNT * WIDTH));
            for (VectorIndex table : new VectorIndex[] {index, VectorIndex.open(memory.asReadOnlyBuffer())}) {
                assertEquals(COUNT, table.getCount());
                assertEquals(WIDTH, table.getWidth());
                assertEquals(metric, table.getMetric());
                VectorIndex.Hits hits = table.search(row(all, 77), 3);
                assertEquals(3, hits.size());
                assertEquals(77, hits.getId(0));
                assertTrue(hits.getScore(0) >= hits.getScore(1));
                assertEquals(10, table.search(row(all, 77), 20, 10, 50).size());
            }
            refused(OxbowException.INVALID_ARGUMENT, () -> VectorIndex.open(memory.asReadOnlyBuffer()).put(0, row(all, 1)));
        }
    }

    @Test
    public void whatDoesNotFitATableIsRefused() {
        ByteBuffer memory = DirectBuffers.allocate((int) VectorIndex.getBytes(COUNT, WIDTH, Metric.L2));
        VectorIndex index = VectorIndex.create(memory, COUNT, WIDTH, Metric.L2);
        float[] one = new float[WIDTH];
        Runnable[] calls = {
            () -> VectorIndex.getBytes(-1, WIDTH, Metric.L2),
            () -> VectorIndex.getBytes(1, 0, Metric.L2),
            () -> VectorIndex.getBytes(1, VectorIndex.MAX_WIDTH + 1, Metric.L2),
            () -> VectorIndex.getBytes(1, WIDTH, Metric.UNKNOWN),
            () -> VectorIndex.getBytes(Long.MAX_VALUE, WIDTH, Metric.L2),
            () -> VectorIndex.create(memory, -1, WIDTH, Metric.L2),
            () -> VectorIndex.create(memory, COUNT + 64, WIDTH, Metric.L2),
            () -> VectorIndex.create(ByteBuffer.allocate(1 << 20), COUNT, WIDTH, Metric.L2),
            () -> index.put(COUNT, one),
            () -> index.put(-1, one),
            () -> index.put(0, new float[WIDTH + 1]),
            () -> index.search(new float[WIDTH - 1], 1),
            () -> index.search(new float[2 * WIDTH], 1),
            () -> index.search(one, 0),
            () -> index.search(one, VectorIndex.MAX_RESULTS + 1),
            () -> index.search(one, -1, 5, 1),
            () -> index.search(one, 1, COUNT, 1),
            () -> index.search(one, 1, -1, 1),
        };
        for (Runnable call : calls) {
            try {
                call.run();
                throw new AssertionError("it was taken");
            } catch (OxbowException e) {
                assertTrue(
                        e.getMessage(),
                        e.getCode() == OxbowException.INVALID_ARGUMENT
                                || e.getCode() == OxbowException.BUFFER_TOO_SMALL
                                || e.getCode() == OxbowException.ARENA_TOO_SMALL);
            }
        }
        // A file that lies about its size.
        memory.put(8, (byte) 0x7f);
        for (int i = 0; i < 64; ++i) {
            ByteBuffer broken = DirectBuffers.allocate(memory.capacity());
            broken.put(memory.duplicate());
            broken.rewind();
            broken.put(i, (byte) ~broken.get(i));
            try {
                VectorIndex.open(broken).search(one, 1);
            } catch (OxbowException e) {
                assertTrue(e.getMessage(), e.getCode() != OxbowException.INTERNAL);
            }
        }
        memory.limit(10);
        try {
            VectorIndex.open(memory);
            throw new AssertionError("it was opened");
        } catch (OxbowException e) {
            assertTrue(e.getMessage(), e.getMessage().contains("bytes"));
        }
    }
}
