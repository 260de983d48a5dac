package dev.oxbow;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.nio.ByteBuffer;
import org.junit.Test;

public class LogMelTest extends Fixture {
    private static final int BINS = 80;
    private static final int FRAMES = 20;

    private static float[] tone(int count) {
        float[] samples = new float[count];
        for (int i = 0; i < count; ++i) {
            samples[i] = (float) Math.sin(2 * Math.PI * 440 * i / 16000) * 0.5f;
        }
        return samples;
    }

    @Test
    public void howARecordingIsCutDoesNotMatterAndABandIsLoudest() {
        float[] samples = tone(FRAMES * 160 + 500);
        try (LogMel mel = LogMel.create(BINS, FRAMES)) {
            ByteBuffer whole = direct(BINS * FRAMES * Float.BYTES);
            ByteBuffer pieces = direct(BINS * FRAMES * Float.BYTES);
            assertEquals(FRAMES * 160, mel.push(samples, 0, samples.length));
            mel.finish(whole);
            mel.push(samples, 0, 77);
            mel.reset();
            for (int at = 0; at < samples.length; at += 333) {
                mel.push(samples, at, Math.min(333, samples.length - at));
            }
            mel.finish(pieces);
            assertEquals(whole, pieces);
            // 440 Hz lies in the lower bands.
            float low = whole.getFloat((10 * FRAMES + FRAMES / 2) * Float.BYTES);
            float high = whole.getFloat((70 * FRAMES + FRAMES / 2) * Float.BYTES);
            assertTrue(low + " above " + high, low > high);
        }
    }

    @Test
    public void whatDoesNotFitIsRefused() {
        refused(OxbowException.INVALID_ARGUMENT, () -> LogMel.create(0, 5));
        refused(OxbowException.INVALID_ARGUMENT, () -> LogMel.create(Integer.MAX_VALUE, Integer.MAX_VALUE));
        LogMel mel = LogMel.create(BINS, FRAMES);
        float[] samples = new float[10];
        refused(OxbowException.INVALID_ARGUMENT, () -> mel.push(samples, 5, 6));
        refused(OxbowException.INVALID_ARGUMENT, () -> mel.push(samples, -1, 6));
        refused(OxbowException.BUFFER_TOO_SMALL, () -> mel.finish(direct(16)));
        mel.close();
        refused(OxbowException.CLOSED, () -> mel.push(samples, 0, 1));
        refused(OxbowException.CLOSED, () -> mel.finish(direct(BINS * FRAMES * Float.BYTES)));
        refused(OxbowException.CLOSED, mel::reset);
    }
}
