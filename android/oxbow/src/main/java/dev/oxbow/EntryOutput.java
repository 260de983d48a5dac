package dev.oxbow;

/** One output of an {@link EntryPoint}: rows of floats. */
public final class EntryOutput {
    // Places in the array of the native code.
    static final int WIDTH = 0;
    static final int MAX_ROWS = 1;
    static final int INFO_COUNT = 2;

    private final String name;
    private final long[] info;

    EntryOutput(String name, long[] info) {
        this.name = name;
        this.info = info;
    }

    /** {@return what {@link EntryRun#output} calls it} */
    public String getName() {
        return name;
    }

    /** {@return how many numbers a row has} */
    public int getWidth() {
        return (int) info[WIDTH];
    }

    /** {@return how many rows it has at most} */
    public int getMaxRows() {
        return (int) info[MAX_ROWS];
    }

    @Override
    public String toString() {
        return name + "[" + getMaxRows() + "][" + getWidth() + "]";
    }
}
