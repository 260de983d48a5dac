package android.os;

public final class Debug {
    public static native long getNativeHeapAllocatedSize();
}
