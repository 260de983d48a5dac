package dev.oxbow;

/** How the rows of a text become one. */
public enum Pooling {
    // In the order of oxb_pooling.
    MEAN,
    FIRST,
    LAST,
    MAX
}
