package dev.oxbow;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/**
 * One run of an {@link EntryPoint} with any of its inputs, for any of its outputs, by their names. The main input must be
 * among them. May be run any number of times, by one thread at a time, and its buffers filled anew in between.
 */
public final class EntryRun {
    final EntryPoint entry;
    final List<String> names = new ArrayList<>();
    final List<ByteBuffer> buffers = new ArrayList<>();
    final List<Integer> rows = new ArrayList<>();
    /** The inputs come first. */
    int inputs;
    /** Rows of the outputs after the last run. */
    int[] written = {};

    /**
     * A run without inputs and outputs so far.
     *
     * @param entry the part of the model that runs
     */
    public EntryRun(EntryPoint entry) {
        this.entry = Objects.requireNonNull(entry);
    }

    /**
     * An input of {@link ValueType#I32}, such as tokens.
     *
     * @param name what {@link EntryInput#getName} gives
     * @param values are copied
     * @return this
     */
    public EntryRun input(String name, int... values) {
        ByteBuffer copy = ByteBuffer.allocateDirect(bytes(values.length)).order(ByteOrder.nativeOrder());
        copy.asIntBuffer().put(values);
        return input(name, ValueType.I32, copy);
    }

    /**
     * An input of {@link ValueType#F32}.
     *
     * @param name what {@link EntryInput#getName} gives
     * @param values are copied
     * @return this
     */
    public EntryRun input(String name, float... values) {
        ByteBuffer copy = ByteBuffer.allocateDirect(bytes(values.length)).order(ByteOrder.nativeOrder());
        copy.asFloatBuffer().put(values);
        return input(name, ValueType.F32, copy);
    }

    /**
     * An input in a direct buffer.
     *
     * @param name what {@link EntryInput#getName} gives
     * @param values in native order, between position and limit; each run reads them
     * @return this
     */
    public EntryRun input(String name, ByteBuffer values) {
        return input(name, entry.getInput(name).getType(), values);
    }

    private EntryRun input(String name, ValueType type, ByteBuffer values) {
        EntryInput input = entry.getInput(name);
        if (input.getType() != type) {
            throw OxbowException.invalid("input '" + name + "' takes " + input.getType() + ", not " + type);
        }
        DirectBuffers.checkReadable(values, "input '" + name + "'");
        DirectBuffers.checkOrder(values, "input '" + name + "'");
        long row = (long) input.getWidth() * Float.BYTES;
        if (row == 0 || values.remaining() % row != 0) {
            throw OxbowException.invalid(
                    "input '" + name + "' has " + values.remaining() + " bytes; its rows have " + row + " each");
        }
        names.add(inputs, name);
        buffers.add(inputs, values);
        rows.add(inputs, (int) (values.remaining() / row));
        ++inputs;
        return this;
    }

    /**
     * An output, into a direct buffer.
     *
     * @param name what {@link EntryOutput#getName} gives
     * @param values where it goes, in native order, from the position on
     * @param rowCount of the main output, the last rows; the others have the rows they have, at most {@link
     *     EntryOutput#getMaxRows}
     * @return this
     */
    public EntryRun output(String name, ByteBuffer values, int rowCount) {
        EntryOutput output = entry.getOutput(name);
        if (rowCount < 0) {
            throw OxbowException.invalid(rowCount + " rows of output '" + name + "'");
        }
        DirectBuffers.checkFloats(values, (long) rowCount * output.getWidth(), "the buffer for output '" + name + "'");
        names.add(name);
        buffers.add(values);
        rows.add(rowCount);
        return this;
    }

    /**
     * How many rows of an output the last run gave.
     *
     * @param name of an output that was wanted
     * @return its rows
     */
    public int getRows(String name) {
        int found = names.subList(inputs, names.size()).indexOf(name);
        if (found < 0 || found >= written.length) {
            throw OxbowException.invalid("there are no rows of '" + name + "': it was not wanted, or nothing ran");
        }
        return written[found];
    }

    private static int bytes(int values) {
        if (values > Integer.MAX_VALUE / Float.BYTES) {
            throw OxbowException.invalid("an input of " + values + " values");
        }
        return values * Float.BYTES;
    }
}
