package dev.oxbow;

/** The options that tests/java gave the command line. */
final class Tool {
    private Tool() {}

    static final int TOKENS = 200;
    static final long SEED = 7;

    static GeneratorOptions options() {
        return new GeneratorOptions().maxTokens(TOKENS).sampling(new SamplerOptions().seed(SEED));
    }

    static GeneratorOptions advisedOptions(Model model) {
        return new GeneratorOptions().maxTokens(40).sampling(model.getAdvisedSampling().seed(SEED));
    }
}
