package dev.oxbow;

/** How the bytes of a model's file are reached. */
public enum Access {
    // In the order of oxb_access.
    /** The file is mapped: pages are read when they are needed and can be given back to the system. */
    MAP,
    /** The file is read into memory: it may then change or go, and no run waits for the disk. */
    READ
}
