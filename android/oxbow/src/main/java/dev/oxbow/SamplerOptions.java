package dev.oxbow;

/** How the next token is picked. {@link Model#getAdvisedSampling} gives what a model's makers advise. */
public final class SamplerOptions {
    float temperature = 0.8f;
    int topK;
    float topP = 1.0f;
    float repetitionPenalty = 1.0f;
    int repetitionWindow = 64;
    long seed;

    /** 0: always the most likely token; the rest is then ignored but the penalty. 0.8 unless set. */
    public SamplerOptions temperature(float value) {
        temperature = value;
        return this;
    }

    /** Keep the k most likely tokens; 0: all. */
    public SamplerOptions topK(int k) {
        topK = notNegative(k, "topK");
        return this;
    }

    /** Keep the most likely tokens that together reach this probability; 1: all. */
    public SamplerOptions topP(float probability) {
        topP = probability;
        return this;
    }

    /** Above 1 makes tokens of the window less likely; 1: off. */
    public SamplerOptions repetitionPenalty(float factor) {
        repetitionPenalty = factor;
        return this;
    }

    /** The last tokens that the penalty looks at; 64 unless set. */
    public SamplerOptions repetitionWindow(int tokens) {
        repetitionWindow = notNegative(tokens, "repetitionWindow");
        return this;
    }

    /** Same seed, same logits: same tokens, on every machine. All 64 bits count. */
    public SamplerOptions seed(long value) {
        seed = value;
        return this;
    }

    /** What {@link #temperature} set. */
    public float getTemperature() {
        return temperature;
    }

    /** What {@link #topK} set. */
    public int getTopK() {
        return topK;
    }

    /** What {@link #topP} set. */
    public float getTopP() {
        return topP;
    }

    /** What {@link #repetitionPenalty} set. */
    public float getRepetitionPenalty() {
        return repetitionPenalty;
    }

    /** What {@link #repetitionWindow} set. */
    public int getRepetitionWindow() {
        return repetitionWindow;
    }

    /** What {@link #seed} set. */
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
