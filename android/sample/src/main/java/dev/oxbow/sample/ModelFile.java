package dev.oxbow.sample;

import android.content.Context;
import android.content.res.AssetFileDescriptor;
import dev.oxbow.AndroidFiles;
import dev.oxbow.Model;
import dev.oxbow.OpenOptions;
import dev.oxbow.SessionOptions;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;

/** The model among the app's assets. */
final class ModelFile {
    private static final String NAME = "model.oxb";
    /** What a model's place in a file must be a multiple of. */
    private static final int ALIGNMENT = 64;

    private ModelFile() {}

    /**
     * Maps the model where it lies in the APK: it is not copied, and not read before it is needed. Gradle aligns assets to
     * 4 bytes only; unless zipalign did better, the model is copied once per installation and mapped from there. The options
     * are those of the session to come.
     */
    static Model open(Context context, SessionOptions options) throws IOException {
        try (AssetFileDescriptor asset = context.getAssets().openFd(NAME)) {
            if (asset.getStartOffset() % ALIGNMENT == 0) {
                return AndroidFiles.open(asset, new OpenOptions().session(options));
            }
            File copy = new File(context.getNoBackupFilesDir(), NAME);
            if (copy.length() != asset.getLength()
                    || copy.lastModified() < new File(context.getPackageCodePath()).lastModified()) {
                copy(asset, copy);
            }
            return Model.open(copy.getPath(), new OpenOptions().session(options));
        }
    }

    /** Under another name first, so that a copy cut short is never taken for the model. */
    private static void copy(AssetFileDescriptor asset, File to) throws IOException {
        File part = new File(to.getPath() + ".part");
        try (InputStream in = asset.createInputStream();
                OutputStream out = new FileOutputStream(part)) {
            byte[] buffer = new byte[1 << 16];
            for (int count; (count = in.read(buffer)) > 0; ) {
                out.write(buffer, 0, count);
            }
        }
        if (!part.renameTo(to)) {
            throw new IOException("cannot write " + to);
        }
    }
}
