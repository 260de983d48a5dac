package dev.oxbow;

/** Who says a message of a chat. In the order of the native code. */
public enum Role {
    SYSTEM,
    USER,
    ASSISTANT
}
