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

    /**
     * Opens an asset, as {@code AssetManager.openFd} gives it.
     *
     * @param asset stored, not compressed, at a multiple of 64 bytes
     * @return the model, which needs the descriptor no more
     */
    @WorkerThread
    public static Model open(AssetFileDescriptor asset) {
        return open(asset, new OpenOptions());
    }

    /**
     * Opens an asset with options.
     *
     * @param asset stored, not compressed, at a multiple of 64 bytes
     * @param options how to open it
     * @return the model, which needs the descriptor no more
     */
    @WorkerThread
    public static Model open(AssetFileDescriptor asset, OpenOptions options) {
        int fd = asset.getParcelFileDescriptor().getFd();
        return Model.open(fd, asset.getStartOffset(), asset.getLength(), options);
    }

    /**
     * Opens a whole file, as {@code ContentResolver.openFileDescriptor(uri, "r")} gives it.
     *
     * @param file no pipe, which cannot be mapped
     * @return the model, which needs the descriptor no more
     */
    @WorkerThread
    public static Model open(ParcelFileDescriptor file) {
        return open(file, new OpenOptions());
    }

    /**
     * Opens a whole file with options.
     *
     * @param file no pipe, which cannot be mapped
     * @param options how to open it
     * @return the model, which needs the descriptor no more
     */
    @WorkerThread
    public static Model open(ParcelFileDescriptor file, OpenOptions options) {
        return Model.open(file.getFd(), 0, file.getStatSize(), options);
    }
}
