package dev.oxbow;

/** What the numbers of an input are. */
public enum ValueType {
    /** Floats of 32 bits. */
    F32(0),
    /** Whole numbers of 32 bits. */
    I32(2),
    /** Something that a newer native library knows and these classes do not. */
    UNKNOWN(-1);

    final int code;

    ValueType(int code) {
        this.code = code;
    }

    static ValueType of(long number) {
        return number == F32.code ? F32 : number == I32.code ? I32 : UNKNOWN;
    }
}
