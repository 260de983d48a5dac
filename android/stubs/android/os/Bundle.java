package android.os;

public final class Bundle {
    public native void putString(String key, String value);

    public native String getString(String key, String otherwise);
}
