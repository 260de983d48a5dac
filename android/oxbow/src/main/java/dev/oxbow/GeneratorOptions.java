package dev.oxbow;

import java.util.Objects;

/** How texts are generated. Read when the generator is created. */
public final class GeneratorOptions {
    /** Null: as advised. */
    SamplerOptions sampling;
    long maxTokens = 200;
    String[] stopTexts = {};
    boolean chat;
    boolean literalText;
    boolean addTemplate = true;
    /** 0: 4,096. */
    int maxWordBytes;
    int undoTurns;

    /**
     * How tokens are picked.
     *
     * @param options unless set, {@link Model#getAdvisedSampling as the model's makers advise}
     * @return this
     */
    public GeneratorOptions sampling(SamplerOptions options) {
        sampling = Objects.requireNonNull(options);
        return this;
    }

    /**
     * Most tokens of one text.
     *
     * @param count 200 unless set
     * @return this
     */
    public GeneratorOptions maxTokens(long count) {
        if (count < 0) {
            throw OxbowException.invalid(count + " tokens");
        }
        maxTokens = count;
        return this;
    }

    /**
     * A text ends before any of these, however it is cut into tokens.
     *
     * @param texts none may be empty
     * @return this
     */
    public GeneratorOptions stopTexts(String... texts) {
        for (String text : texts) {
            if (text.isEmpty()) {
                throw OxbowException.invalid("a stop text is empty");
            }
        }
        stopTexts = texts.clone();
        return this;
    }

    /**
     * Whether prompts are questions of a {@link Generator#say chat}, with a model that was trained to answer.
     *
     * @param on off unless set
     * @return this
     */
    public GeneratorOptions chat(boolean on) {
        chat = on;
        return this;
    }

    /**
     * Whether the text of a special token in a prompt is text like any other; a message that has one is refused.
     *
     * @param on off unless set
     * @return this
     */
    public GeneratorOptions literalText(boolean on) {
        literalText = on;
        return this;
    }

    /**
     * Whether the tokens that the model expects before and behind a text, such as its start, are added.
     *
     * @param on on unless set
     * @return this
     */
    public GeneratorOptions addTemplate(boolean on) {
        addTemplate = on;
        return this;
    }

    /**
     * Bytes of the longest word of a prompt. Memory grows with it.
     *
     * @param bytes 64 to 16,777,216; 4,096 unless set
     * @return this
     */
    public GeneratorOptions maxWordBytes(int bytes) {
        maxWordBytes = bytes;
        return this;
    }

    /**
     * Turns of a chat that {@link Generator#undo} can take back; each needs memory for a state.
     *
     * @param count none unless set
     * @return this
     */
    public GeneratorOptions undoTurns(int count) {
        if (count < 0) {
            throw OxbowException.invalid(count + " turns");
        }
        undoTurns = count;
        return this;
    }
}
