package dev.oxbow;

import androidx.annotation.WorkerThread;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Objects;

/**
 * Continues a session's stream with text: feeds a prompt, picks tokens, and tells of their text piece by piece. Serves
 * one thread at a time, and its session is busy while it generates.
 *
 * <p>Afterwards the stream holds the prompt and the tokens that were picked, but for the last: that one is fed with what
 * follows it. A next call continues the same text; for a new one reset the generator or the session, whereupon the random
 * numbers begin again at the seed: same prompt, same text.
 */
public final class Generator extends Resumable {
    private static final int PIECE_BYTES = 4096;
    /** Those of {@link Generation}, and after them how much of the prompt was given; -1: all of it, and tokens are picked. */
    private static final int NUMBERS = Generation.NUMBERS + 1;
    private static final int NO_ROLE = -1;

    private final Session session;
    private final long maxTokens;
    private final boolean chat;

    private Generator(Session session, GeneratorOptions options) {
        this.session = session;
        maxTokens = options.maxTokens;
        chat = options.chat;
        Model model = session.getModel();
        boolean answers = !model.getChatBefore().isEmpty() || !model.getChatAfter().isEmpty();
        if (chat && !answers) {
            throw OxbowException.invalid(
                    "the file does not say how to ask the model: it was not trained to answer, or was converted "
                            + "without its chat template");
        }
        Texts stops = new Texts(options.stopTexts);
        SamplerOptions sampling = options.sampling != null ? options.sampling : new SamplerOptions();
        own(
                create(
                        session,
                        session.handle(),
                        options.sampling == null,
                        sampling.temperature,
                        sampling.topK,
                        sampling.topP,
                        sampling.repetitionPenalty,
                        sampling.repetitionWindow,
                        sampling.seed,
                        stops.bytes,
                        stops.lengths,
                        maxTokens,
                        options.undoTurns,
                        options.maxWordBytes,
                        options.literalText,
                        options.addTemplate));
    }

    /**
     * A generator of 200 tokens at most, picked as the model's makers advise.
     *
     * @param session whose stream it continues, from where it is
     * @return the generator
     */
    @WorkerThread
    public static Generator create(Session session) {
        return create(session, new GeneratorOptions());
    }

    /**
     * A generator with options.
     *
     * @param session whose stream it continues, from where it is
     * @param options how to generate
     * @return the generator
     */
    @WorkerThread
    public static Generator create(Session session, GeneratorOptions options) {
        return new Generator(session, options);
    }

    /** {@return the session that it continues} */
    public Session getSession() {
        return session;
    }

    /**
     * Continues the stream with a prompt and then with what the model writes.
     *
     * @param prompt in a chat the next question
     * @param listener gets the text, piece by piece, on this thread
     * @return why it ended, and what it took
     */
    @WorkerThread
    public Generation generate(String prompt, TextListener listener) {
        return generate(prompt, listener, new Cancellation());
    }

    /**
     * Continues the stream, until another thread cancels it.
     *
     * @param prompt in a chat the next question
     * @param listener gets the text, piece by piece, on this thread
     * @param cancellation ends the text from any thread, also before it begins
     * @return why it ended, and what it took
     */
    @WorkerThread
    public Generation generate(String prompt, TextListener listener, Cancellation cancellation) {
        return generate(chat ? Role.USER.ordinal() : NO_ROLE, Text.encode(prompt), null, listener, cancellation);
    }

    /**
     * Continues the stream with a prompt of tokens, which nothing is put around.
     *
     * @param prompt without any, the text goes on where the stream is; an empty stream begins with the model's start
     *     token, or with a line break
     * @param listener gets the text, piece by piece, on this thread
     * @param cancellation ends the text from any thread, also before it begins
     * @return why it ended, and what it took
     */
    @WorkerThread
    public Generation generate(int[] prompt, TextListener listener, Cancellation cancellation) {
        return generate(NO_ROLE, null, Objects.requireNonNull(prompt), listener, cancellation);
    }

    private Generation generate(
            int role, byte[] text, int[] tokens, TextListener listener, Cancellation cancellation) {
        long[] numbers = new long[NUMBERS];
        Run run = new Run(listener, cancellation, numbers, text != null ? text.length : tokens.length);
        int end =
                generate(handle(), session, session.handle(), role, text, tokens, maxTokens, run, run.piece, numbers);
        return new Generation(end, numbers);
    }

    /**
     * The whole text at once.
     *
     * @param prompt in a chat the next question
     * @return the text without the prompt
     */
    @WorkerThread
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

    /**
     * Adds to the prompt and generates nothing.
     *
     * @param text what is generated next continues it
     */
    @WorkerThread
    public void add(String text) {
        say(handle(), session, session.handle(), NO_ROLE, Text.encode(text));
    }

    /**
     * Adds a message of a chat, with what the model's own template puts around it, and generates nothing: the system's
     * text, or what was said earlier. What was said stays in the stream and is not fed again.
     *
     * @param role who says it
     * @param text what is said
     */
    @WorkerThread
    public void say(Role role, String text) {
        say(handle(), session, session.handle(), role.ordinal(), Text.encode(text));
    }

    /** Takes back the last question and its answer; see {@link GeneratorOptions#undoTurns}. */
    public void undo() {
        undo(handle(), session, session.handle());
    }

    /** An empty stream, as after creation. */
    public void reset() {
        reset(handle(), session, session.handle());
    }

    /**
     * What texts may be from now on.
     *
     * @param constraint tokens that would make them anything else become impossible
     */
    public void setConstraint(Constraint constraint) {
        constrain(handle(), session, session.handle(), constraint.code, new byte[0], new int[0]);
    }

    /**
     * From now on each text is one of these; {@link Generation#getChoice} tells which.
     *
     * @param choices the texts to choose from
     */
    public void setChoices(String... choices) {
        Texts texts = new Texts(choices);
        constrain(handle(), session, session.handle(), Constraint.CHOICES, texts.bytes, texts.lengths);
    }

    /** Bytes of a saved state, the same at every position of the stream. */
    @Override
    public long getStateBytes() {
        return stateBytes(handle(), session, session.handle());
    }

    /**
     * The stream and the text under way, random numbers included, into a direct buffer from its position on. A generator
     * with the same options that loads it, in this process or in another, goes on as this one would have.
     */
    @Override
    public void save(ByteBuffer state) {
        DirectBuffers.checkWritable(state, "the buffer for the state");
        state(handle(), session, session.handle(), false, state, state.position(), state.remaining());
    }

    /** Continues where {@link #save} was called; the buffer holds that state and nothing else. */
    @Override
    public void load(ByteBuffer state) {
        DirectBuffers.checkReadable(state, "the state");
        state(handle(), session, session.handle(), true, state, state.position(), state.remaining());
    }

    /** Texts as the native side takes them: their bytes one after the other. */
    private static final class Texts {
        final byte[] bytes;
        final int[] lengths;

        Texts(String[] texts) {
            ByteArrayOutputStream all = new ByteArrayOutputStream();
            lengths = new int[texts.length];
            for (int i = 0; i < lengths.length; ++i) {
                byte[] text = Text.encode(texts[i]);
                all.write(text, 0, text.length);
                lengths[i] = text.length;
            }
            bytes = all.toByteArray();
        }
    }

    /** One call of generate(), as the native side sees it. */
    private static final class Run {
        private final TextListener listener;
        private final Cancellation cancellation;
        private final long[] numbers;
        private final int promptSize;
        private long givenTold = -1;
        private long tokensTold;
        /** Where the native side puts the bytes of the next piece. */
        private final byte[] piece = new byte[PIECE_BYTES];

        Run(TextListener listener, Cancellation cancellation, long[] numbers, int promptSize) {
            this.listener = Objects.requireNonNull(listener);
            this.cancellation = Objects.requireNonNull(cancellation);
            this.numbers = numbers;
            this.promptSize = promptSize;
        }

        /** Called before every part of the prompt, after the last, and with every token; false: no more is wanted. */
        private boolean onStep(int bytes) {
            if (listener instanceof ProgressListener) {
                tell((ProgressListener) listener);
            }
            if (bytes > 0 && !listener.onText(new String(piece, 0, bytes, StandardCharsets.UTF_8))) {
                return false;
            }
            return !cancellation.isCancelled();
        }

        private void tell(ProgressListener progress) {
            long given = numbers[Generation.NUMBERS];
            if (given > givenTold) {
                givenTold = given;
                progress.onPrompt((int) given, promptSize);
            } else if (given < 0 && numbers[Generation.TOKENS] != tokensTold) {
                tokensTold = numbers[Generation.TOKENS];
                progress.onToken(tokensTold, numbers[Generation.TOKEN_NANOSECONDS]);
            }
        }
    }

    private native long create(
            Session session,
            long sessionHandle,
            boolean advised,
            float temperature,
            int topK,
            float topP,
            float penalty,
            int window,
            long seed,
            byte[] stopTexts,
            int[] stopLengths,
            long maxTokens,
            int undoTurns,
            int maxWordBytes,
            boolean literalText,
            boolean addTemplate);

    private native int generate(
            long handle,
            Session session,
            long sessionHandle,
            int role,
            byte[] text,
            int[] tokens,
            long maxTokens,
            Run run,
            byte[] piece,
            long[] numbers);

    private native void say(long handle, Session session, long sessionHandle, int role, byte[] text);

    private native void undo(long handle, Session session, long sessionHandle);

    private native void reset(long handle, Session session, long sessionHandle);

    private native void constrain(
            long handle, Session session, long sessionHandle, int kind, byte[] texts, int[] lengths);

    private native long stateBytes(long handle, Session session, long sessionHandle);

    private native void state(
            long handle, Session session, long sessionHandle, boolean load, ByteBuffer buffer, int position, int length);
}
