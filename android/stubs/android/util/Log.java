package android.util;

public final class Log {
    public static native int i(String tag, String message);
}
