package dev.oxbow;

/** How the rows of a text become one. */
public enum Pooling {
    // In the order of oxb_pooling.
    /** The mean of all rows. */
    MEAN,
    /** The first token's row. */
    FIRST,
    /** The last token's row. */
    LAST,
    /** In each place the largest of all rows. */
    MAX
}
