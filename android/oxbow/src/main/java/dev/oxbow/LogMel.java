package dev.oxbow;

import java.nio.ByteBuffer;

/**
 * The log-mel spectrogram of a recording, as Whisper is fed it: samples of one channel, 16,000 a second, from -1 to 1,
 * become rows of bands. Serves one thread at a time.
 */
public final class LogMel extends NativeObject {
    private final int bins;
    private final int frames;

    private LogMel(int bins, int frames) {
        this.bins = bins;
        this.frames = frames;
    }

    /** {@code bins} bands with {@code frames} columns of 160 samples each. */
    public static LogMel create(int bins, int frames) {
        if (bins < 1 || frames < 1) {
            throw OxbowException.invalid(bins + " bands of " + frames + " columns");
        }
        LogMel mel = new LogMel(bins, frames);
        mel.own(createNative(bins, frames));
        return mel;
    }

    /** For an input of a model that hears: as many bands as it has rows, as many columns as it is wide. */
    public static LogMel create(EntryInput input) {
        return create(input.getMaxRows(), input.getWidth());
    }

    /** Takes samples as they come, and tells how many it took: fewer only when the recording is full. */
    public int push(float[] samples, int offset, int count) {
        DirectBuffers.checkRange(samples.length, offset, count, "samples");
        return push(handle(), samples, offset, count);
    }

    /**
     * Fills up with silence, writes all bands as floats in native order to a direct buffer, and begins anew. As an input
     * of an {@link EntryRun} they are what the model wants.
     */
    public void finish(ByteBuffer features) {
        DirectBuffers.checkFloats(features, (long) bins * frames, "the buffer for features");
        finish(handle(), features, features.position(), features.remaining());
    }

    /** Forgets what it took. */
    public void reset() {
        reset(handle());
    }

    private static native long createNative(int bins, int frames);

    private native int push(long handle, float[] samples, int offset, int count);

    private native void finish(long handle, ByteBuffer features, int position, int length);

    private native void reset(long handle);
}
