package dev.oxbow;

/** Who says a message of a chat. In the order of the native code. */
public enum Role {
    /** What the model is to be told before the first question. */
    SYSTEM,
    /** Who asks. */
    USER,
    /** The model. */
    ASSISTANT
}
