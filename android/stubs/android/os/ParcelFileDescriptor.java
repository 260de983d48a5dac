package android.os;

public class ParcelFileDescriptor {
    public native int getFd();
}
