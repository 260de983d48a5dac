package dev.oxbow;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Objects;

/**
 * Continues a session's stream with text: feeds a prompt, picks tokens, and tells of their text piece by piece. Serves
 * one thread at a time, and its session is busy while it generates.
 *
 * <p>Afterwards the stream holds the prompt and every token that was picked, so a next call continues the same text; for
 * a new one reset the session. The random numbers begin again at the seed with every call: same stream, same prompt,
 * same text.
 */
public final class Generator extends NativeObject {
    private static final int REASON_BITS = 8;

    private final Session session;
    private final Tokenizer tokenizer;
    private final long maxTokens;
    private final String before;
    private final String after;
    private final int firstToken;
    private final int pieceBytes;

    private Generator(Session session, GeneratorOptions options, Tokenizer tokenizer) {
        Model model = session.getModel();
        this.session = session;
        this.tokenizer = tokenizer;
        maxTokens = options.maxTokens;
        before = options.chat ? model.getChatBefore() : "";
        after = options.chat ? model.getChatAfter() : "";
        if (options.chat && before.isEmpty() && after.isEmpty()) {
            throw OxbowException.invalid(
                    "the file does not say how to ask the model: it was not trained to answer, or was converted "
                            + "without its chat template");
        }
        firstToken = firstToken(model, tokenizer);
        ByteArrayOutputStream stopTexts = new ByteArrayOutputStream();
        int[] stopLengths = new int[options.stopTexts.length];
        for (int i = 0; i < stopLengths.length; ++i) {
            byte[] text = Text.encode(options.stopTexts[i]);
            stopTexts.write(text, 0, text.length);
            stopLengths[i] = text.length;
        }
        SamplerOptions sampling = options.sampling != null ? options.sampling : model.getAdvisedSampling();
        own(
                create(
                        model.handle(),
                        sampling.temperature,
                        sampling.topK,
                        sampling.topP,
                        sampling.repetitionPenalty,
                        sampling.repetitionWindow,
                        sampling.seed,
                        stopTexts.toByteArray(),
                        stopLengths));
        pieceBytes = pieceBytes(handle());
    }

    /** 200 tokens at most, picked as the model's makers advise. */
    public static Generator create(Session session) {
        return create(session, new GeneratorOptions());
    }

    public static Generator create(Session session, GeneratorOptions options) {
        // A chat template brings its own special tokens.
        TokenizerOptions tokens = new TokenizerOptions().addTemplate(!options.chat);
        Tokenizer tokenizer = Tokenizer.create(session.getModel(), tokens);
        try {
            return new Generator(session, options, tokenizer);
        } catch (RuntimeException | Error e) {
            tokenizer.close();
            throw e;
        }
    }

    public Session getSession() {
        return session;
    }

    /** Continues the stream with this prompt and then with what the model writes. */
    public Generation generate(String prompt, TextListener listener) {
        return generate(prompt, listener, new Cancellation());
    }

    /** The same, until another thread cancels it. */
    public Generation generate(String prompt, TextListener listener, Cancellation cancellation) {
        return generate(tokenizer.encode(before + prompt + after), listener, cancellation);
    }

    /**
     * The same for a prompt of tokens, which nothing is put around. Without any, the text goes on where the stream is; an
     * empty stream begins with the model's start token, or with a line break.
     */
    public Generation generate(int[] prompt, TextListener listener, Cancellation cancellation) {
        Run run = new Run(listener, cancellation, new byte[pieceBytes]);
        long result =
                generate(
                        handle(), session, session.handle(), prompt, prompt.length, firstToken, maxTokens, run, run.piece);
        int reason = (int) (result & ((1 << REASON_BITS) - 1));
        return new Generation(reason, run.promptTokens, result >>> REASON_BITS);
    }

    /** The whole text at once. */
    public String generateText(String prompt) {
        StringBuilder text = new StringBuilder();
        generate(
                prompt,
                piece -> {
                    text.append(piece);
                    return true;
                });
        return text.toString();
    }

    @Override
    public void close() {
        super.close();
        tokenizer.close();
    }

    /** Where an empty stream begins: at the model's start token, after a line break, or else at the first token. */
    private static int firstToken(Model model, Tokenizer tokenizer) {
        if (model.getStartToken() >= 0) {
            return model.getStartToken();
        }
        try {
            int[] lineBreak = tokenizer.encode("\n");
            return lineBreak.length == 1 ? lineBreak[0] : 0;
        } catch (OxbowException e) {
            return 0; // The vocabulary has none.
        }
    }

    /** One call of generate(), as the native side sees it. */
    private static final class Run {
        private final TextListener listener;
        private final Cancellation cancellation;
        /** Where the native side puts the bytes of the next piece. */
        private final byte[] piece;
        private long promptTokens;

        Run(TextListener listener, Cancellation cancellation, byte[] piece) {
            this.listener = Objects.requireNonNull(listener);
            this.cancellation = Objects.requireNonNull(cancellation);
            this.piece = piece;
        }

        /** Called before every segment of the prompt and with every token; false: no more is wanted. */
        private boolean onStep(long promptTokensFed, int bytes) {
            promptTokens = promptTokensFed;
            if (bytes > 0 && !listener.onText(new String(piece, 0, bytes, StandardCharsets.UTF_8))) {
                return false;
            }
            return !cancellation.isCancelled();
        }
    }

    private native long create(
            long model,
            float temperature,
            int topK,
            float topP,
            float penalty,
            int window,
            long seed,
            byte[] stopTexts,
            int[] stopLengths);

    private native int pieceBytes(long handle);

    private native long generate(
            long handle,
            Session session,
            long sessionHandle,
            int[] prompt,
            int promptLength,
            int firstToken,
            long maxTokens,
            Run run,
            byte[] piece);
}
