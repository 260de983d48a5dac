package dev.oxbow;

/** Calls a native method that -Xcheck:jni must warn of. */
public final class Careless {
    private Careless() {}

    public static void main(String[] arguments) {
        System.load(arguments[0]);
        call();
    }

    private static void harmless() {}

    private static native void call();
}
