package dev.oxbow;

/** The native library: its version and what was built into it. */
public final class Oxbow {
    private Oxbow() {}

    static {
        System.loadLibrary("oxbow_jni");
    }

    /** Loads the native library, which the first use of any class here also does. */
    public static void load() {
        // Naming the class has run its initializer.
    }

    /** {@return the version of the native library, as in "0.1.0"} */
    public static String getVersion() {
        int version = version();
        return version / 10000 + "." + version / 100 % 100 + "." + version % 100;
    }

    /**
     * Whether sessions can be created with a backend.
     *
     * @param backend some are an option of the native library's build
     * @return whether this one is in it
     */
    public static boolean isBuiltIn(Backend backend) {
        return isBuiltIn(backend.ordinal());
    }

    /** {@return native objects that are not freed yet, of all kinds: to find leaks with} */
    public static int getLivingObjects() {
        return livingObjects();
    }

    /** {@return native memory that those objects hold, without what lies in files and in buffers of the application} */
    public static long getNativeBytes() {
        return Cleanup.heldBytes();
    }

    private static native int version();

    private static native boolean isBuiltIn(int backend);

    private static native int livingObjects();
}
