package dev.oxbow;

import java.util.Collections;
import java.util.List;

/**
 * A part of a model that can be run: most have one, "step"; models that translate have "encode" and "step". See
 * {@link Model#getEntries} and {@link EntryRun}.
 */
public final class EntryPoint {
    // Places in the array of the native code.
    static final int OUTPUT_ROWS = 0;
    static final int MAX_ROWS = 1;
    static final int INPUT_COUNT = 2;
    static final int OUTPUT_COUNT = 3;
    static final int STARTS = 4;
    static final int ANY_PIECES = 5;
    static final int INFO_COUNT = 6;

    final int index;
    private final String name;
    private final long[] info;
    private final List<EntryInput> inputs;
    private final List<EntryOutput> outputs;

    EntryPoint(int index, String name, long[] info, List<EntryInput> inputs, List<EntryOutput> outputs) {
        this.index = index;
        this.name = name;
        this.info = info;
        this.inputs = Collections.unmodifiableList(inputs);
        this.outputs = Collections.unmodifiableList(outputs);
    }

    /** {@return what {@link Model#getEntry} calls it} */
    public String getName() {
        return name;
    }

    /**
     * {@return how many rows the main output has when their number is fixed, as with a classifier; 0: the caller
     * chooses}
     */
    public int getOutputRows() {
        return (int) info[OUTPUT_ROWS];
    }

    /** {@return how many rows the main input has at most} */
    public int getMaxRows() {
        return (int) info[MAX_ROWS];
    }

    /** {@return whether every run begins with a reset} */
    public boolean isStarting() {
        return info[STARTS] != 0;
    }

    /** {@return whether how a stream is cut into runs does not change its results} */
    public boolean takesAnyPieces() {
        return info[ANY_PIECES] != 0;
    }

    /** {@return what a run takes} The first is the main one: its tokens. */
    public List<EntryInput> getInputs() {
        return inputs;
    }

    /** {@return what a run gives} The first is the main one. */
    public List<EntryOutput> getOutputs() {
        return outputs;
    }

    /**
     * An input by its name; a name that there is not is refused.
     *
     * @param inputName what {@link EntryInput#getName} gives
     * @return the input
     */
    public EntryInput getInput(String inputName) {
        for (EntryInput input : inputs) {
            if (input.getName().equals(inputName)) {
                return input;
            }
        }
        throw OxbowException.invalid("'" + name + "' has no input '" + inputName + "'");
    }

    /**
     * An output by its name; a name that there is not is refused.
     *
     * @param outputName what {@link EntryOutput#getName} gives
     * @return the output
     */
    public EntryOutput getOutput(String outputName) {
        for (EntryOutput output : outputs) {
            if (output.getName().equals(outputName)) {
                return output;
            }
        }
        throw OxbowException.invalid("'" + name + "' has no output '" + outputName + "'");
    }

    @Override
    public String toString() {
        return name + inputs + " -> " + outputs;
    }
}
