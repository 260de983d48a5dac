package android.os;

public class ParcelFileDescriptor implements java.io.Closeable {
    public native int getFd();

    public native long getStatSize();

    @Override
    public native void close() throws java.io.IOException;
}
