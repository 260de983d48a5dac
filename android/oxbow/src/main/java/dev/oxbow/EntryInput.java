package dev.oxbow;

/** One input of an {@link EntryPoint}. */
public final class EntryInput {
    // Places in the array of the native code.
    static final int TYPE = 0;
    static final int WIDTH = 1;
    static final int LIMIT = 2;
    static final int DEFAULT_VALUE = 3;
    static final int REQUIRED = 4;
    static final int MAX_ROWS = 5;
    static final int OWN_ROWS = 6;
    static final int INFO_COUNT = 7;

    private final String name;
    private final long[] info;

    EntryInput(String name, long[] info) {
        this.name = name;
        this.info = info;
    }

    /** {@return what {@link EntryRun#input} calls it} */
    public String getName() {
        return name;
    }

    /** {@return what its values are} */
    public ValueType getType() {
        return ValueType.of(info[TYPE]);
    }

    /** {@return how many numbers a row has} */
    public int getWidth() {
        return (int) info[WIDTH];
    }

    /** {@return of {@link ValueType#I32}: values are 0 to this minus 1} */
    public long getLimit() {
        return info[LIMIT];
    }

    /** {@return of {@link ValueType#I32}: what all values are when the input is not given} F32 are all 0 then. */
    public long getDefaultValue() {
        return info[DEFAULT_VALUE];
    }

    /** {@return whether a run is refused without it} */
    public boolean isRequired() {
        return info[REQUIRED] != 0;
    }

    /** {@return how many rows it has at most} */
    public int getMaxRows() {
        return (int) info[MAX_ROWS];
    }

    /** {@return whether it may have fewer or more rows than the main input, also none} */
    public boolean hasOwnRows() {
        return info[OWN_ROWS] != 0;
    }

    @Override
    public String toString() {
        return name + " " + getType() + "[" + getMaxRows() + "][" + getWidth() + "]";
    }
}
