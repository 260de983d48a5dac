package dev.oxbow;

import android.content.res.AssetFileDescriptor;
import android.os.ParcelFileDescriptor;
import androidx.annotation.WorkerThread;

/**
 * Models in files as Android gives them: assets, and what a {@code Uri} stands for. A class of its own, since its methods name classes
 * of Android, which are not everywhere. Descriptors stay open, and may be closed when these methods have returned.
 */
public final class AndroidFiles {
    private AndroidFiles() {}

    /** An asset, as {@code AssetManager.openFd} gives it: stored, not compressed, at a multiple of 64 bytes. */
    @WorkerThread
    public static Model open(AssetFileDescriptor asset) {
        return open(asset, new OpenOptions());
    }

    /** The same with options. */
    @WorkerThread
    public static Model open(AssetFileDescriptor asset, OpenOptions options) {
        int fd = asset.getParcelFileDescriptor().getFd();
        return Model.open(fd, asset.getStartOffset(), asset.getLength(), options);
    }

    /** A whole file, as {@code ContentResolver.openFileDescriptor(uri, "r")} gives it; no pipe, which cannot be mapped. */
    @WorkerThread
    public static Model open(ParcelFileDescriptor file) {
        return open(file, new OpenOptions());
    }

    /** The same with options. */
    @WorkerThread
    public static Model open(ParcelFileDescriptor file, OpenOptions options) {
        return Model.open(file.getFd(), 0, file.getStatSize(), options);
    }
}
