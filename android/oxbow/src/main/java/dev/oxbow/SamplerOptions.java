package dev.oxbow;

/** How the next token is picked. {@link Model#getAdvisedSampling} gives what a model's makers advise. */
public final class SamplerOptions {
    float temperature = 0.8f;
    int topK;
    float topP = 1.0f;
    float repetitionPenalty = 1.0f;
    int repetitionWindow = 64;
    long seed;

    /**
     * How freely tokens are picked.
     *
     * @param value 0: always the most likely token; the rest is then ignored but the penalty. 0.8 unless set
     * @return this
     */
    public SamplerOptions temperature(float value) {
        temperature = value;
        return this;
    }

    /**
     * Keep the k most likely tokens.
     *
     * @param k 0: all
     * @return this
     */
    public SamplerOptions topK(int k) {
        topK = notNegative(k, "topK");
        return this;
    }

    /**
     * Keep the most likely tokens that together reach a probability.
     *
     * @param probability 1: all
     * @return this
     */
    public SamplerOptions topP(float probability) {
        topP = probability;
        return this;
    }

    /**
     * Makes tokens of the window less likely.
     *
     * @param factor above 1; 1: off
     * @return this
     */
    public SamplerOptions repetitionPenalty(float factor) {
        repetitionPenalty = factor;
        return this;
    }

    /**
     * The last tokens that the penalty looks at.
     *
     * @param tokens 64 unless set
     * @return this
     */
    public SamplerOptions repetitionWindow(int tokens) {
        repetitionWindow = notNegative(tokens, "repetitionWindow");
        return this;
    }

    /**
     * Same seed, same logits: same tokens, on every machine.
     *
     * @param value all 64 bits count
     * @return this
     */
    public SamplerOptions seed(long value) {
        seed = value;
        return this;
    }

    /** {@return what {@link #temperature} set} */
    public float getTemperature() {
        return temperature;
    }

    /** {@return what {@link #topK} set} */
    public int getTopK() {
        return topK;
    }

    /** {@return what {@link #topP} set} */
    public float getTopP() {
        return topP;
    }

    /** {@return what {@link #repetitionPenalty} set} */
    public float getRepetitionPenalty() {
        return repetitionPenalty;
    }

    /** {@return what {@link #repetitionWindow} set} */
    public int getRepetitionWindow() {
        return repetitionWindow;
    }

    /** {@return what {@link #seed} set} */
    public long getSeed() {
        return seed;
    }

    private static int notNegative(int value, String name) {
        if (value < 0) {
            throw OxbowException.invalid(name + " is " + value);
        }
        return value;
    }
}
