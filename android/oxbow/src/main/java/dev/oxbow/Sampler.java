package dev.oxbow;

import java.nio.ByteBuffer;

/** Picks tokens from logits. Serves one thread at a time. */
public final class Sampler extends NativeObject {
    private final int vocabulary;

    private Sampler(int vocabulary) {
        this.vocabulary = vocabulary;
    }

    /**
     * A sampler for logits of a model.
     *
     * @param model whose logits they are
     * @param options how to pick
     * @return the sampler
     */
    public static Sampler create(Model model, SamplerOptions options) {
        Sampler sampler = new Sampler(model.getOutputWidth());
        sampler.own(
                create(
                        sampler.vocabulary,
                        options.temperature,
                        options.topK,
                        options.topP,
                        options.repetitionPenalty,
                        options.repetitionWindow,
                        options.seed));
        return sampler;
    }

    /**
     * Tells of a token that was fed.
     *
     * @param token for the repetition penalty
     */
    public void accept(int token) {
        accept(handle(), token);
    }

    /**
     * Picks a token.
     *
     * @param logits in a direct buffer in native order; -inf makes a token impossible
     * @return the token
     */
    public int pick(ByteBuffer logits) {
        DirectBuffers.checkReadable(logits, "the buffer of logits");
        DirectBuffers.checkOrder(logits, "the buffer of logits");
        DirectBuffers.checkRoom(logits, (long) vocabulary * Float.BYTES, "the buffer of logits");
        return pick(handle(), logits, logits.position(), logits.remaining());
    }

    private static native long create(
            int vocabulary, float temperature, int topK, float topP, float penalty, int window, long seed);

    private native void accept(long handle, int token);

    private native int pick(long handle, ByteBuffer logits, int position, int length);
}
