package android.content.res;

public final class AssetManager {
    public native AssetFileDescriptor openFd(String name) throws java.io.IOException;
}
