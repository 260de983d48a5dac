package android.os;

public final class Bundle {
    public native void putBoolean(String key, boolean value);

    public native boolean getBoolean(String key);

    public native void putString(String key, String value);

    public native String getString(String key, String otherwise);
}
