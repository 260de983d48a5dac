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

    /**
     * Room for a recording.
     *
     * @param bins bands
     * @param frames columns of 160 samples each
     * @return an empty recording
     */
    public static LogMel create(int bins, int frames) {
        if (bins < 1 || frames < 1) {
            throw OxbowException.invalid(bins + " bands of " + frames + " columns");
        }
        LogMel mel = new LogMel(bins, frames);
        mel.own(createNative(bins, frames));
        return mel;
    }

    /**
     * Room for what an input of a model that hears takes.
     *
     * @param input as many bands as it has rows, as many columns as it is wide
     * @return an empty recording
     */
    public static LogMel create(EntryInput input) {
        return create(input.getMaxRows(), input.getWidth());
    }

    /**
     * Takes samples as they come.
     *
     * @param samples at 16,000 in a second, -1 to 1
     * @param offset of the first in the array
     * @param count how many
     * @return how many it took: fewer only when the recording is full
     */
    public int push(float[] samples, int offset, int count) {
        DirectBuffers.checkRange(samples.length, offset, count, "samples");
        return push(handle(), samples, offset, count);
    }

    /**
     * Fills up with silence, writes all bands and begins anew. As an input of an {@link EntryRun} they are what the
     * model wants.
     *
     * @param features a direct buffer, which gets floats in native order
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
