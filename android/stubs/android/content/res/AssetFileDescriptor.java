package android.content.res;

public class AssetFileDescriptor implements java.io.Closeable {
    public native android.os.ParcelFileDescriptor getParcelFileDescriptor();

    public native java.io.FileInputStream createInputStream() throws java.io.IOException;

    public native long getStartOffset();

    public native long getLength();

    @Override
    public native void close() throws java.io.IOException;
}
