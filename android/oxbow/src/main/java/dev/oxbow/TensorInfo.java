package dev.oxbow;

/** A state or an output of a session, as it is now; see {@link Session#getTensor}. */
public final class TensorInfo {
    // Places in the array of the native code.
    private static final int ROWS = 0;
    private static final int MAX_ROWS = 1;
    private static final int WIDTH = 2;
    static final int COUNT = 3;

    private final String name;
    private final long[] info;

    TensorInfo(String name, long[] info) {
        this.name = name;
        this.info = info;
    }

    /** {@return what {@link Session#readTensor} calls it} */
    public String getName() {
        return name;
    }

    /** {@return how many rows are filled now} */
    public int getRows() {
        return (int) info[ROWS];
    }

    /** {@return how many rows it has at most} */
    public int getMaxRows() {
        return (int) info[MAX_ROWS];
    }

    /** {@return how many numbers a row has} */
    public int getWidth() {
        return (int) info[WIDTH];
    }

    @Override
    public String toString() {
        return name + "[" + getRows() + " of " + getMaxRows() + "][" + getWidth() + "]";
    }
}
