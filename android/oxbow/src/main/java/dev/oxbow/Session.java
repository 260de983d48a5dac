package dev.oxbow;

import androidx.annotation.AnyThread;
import androidx.annotation.WorkerThread;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/**
 * A stream of tokens through a model, in a memory that never grows. Serves one thread at a time: a call that comes while
 * another one runs is refused with {@link OxbowException#BUSY}.
 *
 * <p>{@link #feed} takes any number of tokens and keeps the last logits for {@link #sample}; {@link #run} is one segment
 * with the logits of any of its tokens in a buffer of the caller.
 *
 * <p>Buffers are direct. What is read or written begins at the buffer's position; position and limit stay as they are.
 */
public final class Session extends Resumable {
    // Ways of the native state().
    private static final int SAVE = 0;
    private static final int LOAD = 1;
    private static final int CHECKPOINT = 2;
    private static final int REWIND = 3;

    private final Model model;

    private Session(Model model) {
        this.model = model;
    }

    /**
     * A session of one thread, with the fastest kernels and memory of its own.
     *
     * @param model what it streams through
     * @return an empty stream
     */
    @WorkerThread
    public static Session create(Model model) {
        return create(model, new SessionOptions());
    }

    /**
     * A session with options; all of its memory is taken here.
     *
     * @param model what it streams through
     * @param options threads, backend, memory
     * @return an empty stream
     */
    @WorkerThread
    public static Session create(Model model, SessionOptions options) {
        Session session = new Session(Objects.requireNonNull(model));
        ByteBuffer arena = options.arena;
        session.own(
                session.create(
                        model.handle(),
                        options,
                        options.numbers(),
                        options.pipelineCache,
                        arena,
                        arena == null ? 0 : arena.position(),
                        arena == null ? 0 : arena.remaining()));
        return session;
    }

    /** {@return the model that it streams through} */
    public Model getModel() {
        return model;
    }

    /**
     * Feeds all tokens, in segments of {@link Model#getMaxSegment}, and keeps the logits of the last.
     *
     * @param tokens of the model's vocabulary
     */
    @WorkerThread
    public void feed(int[] tokens) {
        feed(tokens, 0, tokens.length);
    }

    /**
     * Feeds part of an array, as {@link #feed(int[])} does. A token the model does not have is refused before anything
     * of its segment is fed; {@link #getPosition} tells where the stream is.
     *
     * @param tokens of the model's vocabulary
     * @param offset of the first in the array
     * @param count how many
     */
    @WorkerThread
    public void feed(int[] tokens, int offset, int count) {
        DirectBuffers.checkRange(tokens.length, offset, count, "tokens");
        feed(handle(), tokens, offset, count);
    }

    /**
     * Feeds one token.
     *
     * @param token of the model's vocabulary
     */
    @WorkerThread
    public void feed(int token) {
        feedOne(handle(), token);
    }

    /**
     * Picks the next token from the logits that {@link #feed} kept; feeds nothing.
     *
     * @param sampler says how
     * @return the token
     */
    public int sample(Sampler sampler) {
        return sample(handle(), sampler, sampler.handle());
    }

    /**
     * Copies the logits that {@link #feed} kept.
     *
     * @param logits gets {@link Model#getOutputWidth} floats in native order
     */
    public void readLogits(ByteBuffer logits) {
        DirectBuffers.checkFloats(logits, model.getOutputWidth(), "the buffer for logits");
        readLogits(handle(), logits, logits.position(), logits.remaining());
    }

    /**
     * Feeds tokens and computes no logits.
     *
     * @param tokens of the model's vocabulary
     * @param offset of the first in the array
     * @param count 1 to {@link Model#getMaxSegment}
     */
    @WorkerThread
    public void run(int[] tokens, int offset, int count) {
        DirectBuffers.checkRange(tokens.length, offset, count, "tokens");
        run(handle(), tokens, offset, count, null, 0, 0, 0);
    }

    /**
     * Feeds tokens and writes the output of the last of them, as floats in native order.
     *
     * @param tokens of the model's vocabulary
     * @param offset of the first in the array
     * @param count 1 to {@link Model#getMaxSegment}
     * @param logits gets {@code rows} times {@link Model#getOutputWidth}
     * @param rows of how many tokens; 1 for a classifier
     */
    @WorkerThread
    public void run(int[] tokens, int offset, int count, ByteBuffer logits, int rows) {
        DirectBuffers.checkRange(tokens.length, offset, count, "tokens");
        if (rows < 1) {
            throw OxbowException.invalid(rows + " rows of logits");
        }
        DirectBuffers.checkFloats(logits, (long) rows * model.getOutputWidth(), "the buffer for logits");
        run(handle(), tokens, offset, count, logits, logits.position(), logits.remaining(), rows);
    }

    /**
     * Runs an entry point of this session's model.
     *
     * @param run its named inputs, and the outputs that are wanted, which are filled
     */
    @WorkerThread
    public void run(EntryRun run) {
        int count = run.names.size();
        ByteBuffer[] buffers = run.buffers.toArray(new ByteBuffer[0]);
        int[] positions = new int[count];
        int[] lengths = new int[count];
        int[] rows = new int[count];
        byte[][] names = new byte[count][];
        for (int i = 0; i < count; ++i) {
            positions[i] = buffers[i].position();
            lengths[i] = buffers[i].remaining();
            rows[i] = run.rows.get(i);
            names[i] = Text.encode(run.names.get(i));
        }
        runEntry(handle(), run.entry.index, run.inputs, names, buffers, positions, lengths, rows);
        run.written = java.util.Arrays.copyOfRange(rows, run.inputs, count);
    }

    /**
     * Several texts of different lengths through a model whose runs start anew each time, such as an encoder or a
     * classifier. No padding is needed, and none is computed.
     *
     * @param texts their tokens
     * @param output a direct buffer in native order, which gets the output of one after the other: one row per text
     *     where {@link EntryPoint#getOutputRows} is 1, else one per token
     */
    @WorkerThread
    public void runBatch(int[][] texts, ByteBuffer output) {
        int total = 0;
        int[] lengths = new int[texts.length];
        for (int i = 0; i < texts.length; ++i) {
            lengths[i] = texts[i].length;
            total = Math.addExact(total, lengths[i]);
        }
        int[] tokens = new int[total];
        int next = 0;
        for (int[] text : texts) {
            System.arraycopy(text, 0, tokens, next, text.length);
            next += text.length;
        }
        DirectBuffers.checkFloats(output, 0, "the buffer for the output");
        runBatch(handle(), tokens, lengths, output, output.position(), output.remaining());
    }

    /**
     * Feeds a token to each of several sessions of one model. Those that share their memory ({@link
     * SessionOptions#lender}) go through the model together, so that its weights are read once for all of them: several
     * streams cost little more than one. Others run one after the other. The results are the same bits.
     *
     * @param sessions of one model
     * @param tokens one for each
     */
    @WorkerThread
    public static void runTogether(Session[] sessions, int[] tokens) {
        runTogether(sessions, handlesOf(sessions, tokens), tokens, null, 0, 0);
    }

    /**
     * Feeds a token to each of several sessions, as {@link #runTogether(Session[], int[])} does.
     *
     * @param sessions of one model
     * @param tokens one for each
     * @param logits gets those of each, {@link Model#getOutputWidth} floats in native order, one row after the other
     */
    @WorkerThread
    public static void runTogether(Session[] sessions, int[] tokens, ByteBuffer logits) {
        long[] handles = handlesOf(sessions, tokens);
        DirectBuffers.checkFloats(logits, (long) sessions.length * sessions[0].model.getOutputWidth(), "the buffer for logits");
        runTogether(sessions, handles, tokens, logits, logits.position(), logits.remaining());
    }

    private static long[] handlesOf(Session[] sessions, int[] tokens) {
        if (sessions.length == 0 || sessions.length != tokens.length) {
            throw OxbowException.invalid(tokens.length + " tokens for " + sessions.length + " sessions");
        }
        long[] handles = new long[sessions.length];
        for (int i = 0; i < handles.length; ++i) {
            handles[i] = sessions[i].handle();
        }
        return handles;
    }

    /**
     * Makes this stream equal to another.
     *
     * @param other its lender, its borrower, or a borrower of the same
     */
    public void copyFrom(Session other) {
        copy(handle(), other, other.handle());
    }

    /**
     * Reads the text to translate, of a model that translates. Starts a new stream.
     *
     * @param tokens of the text
     */
    @WorkerThread
    public void encode(int[] tokens) {
        encode(handle(), tokens, tokens.length);
    }

    /**
     * One row for a whole text, of a model whose runs start anew each time, such as an encoder.
     *
     * @param tokens of the text
     * @param pooling how its rows become one
     * @param normalise whether the row is divided by its length, so that its products with others are cosines
     * @return the row
     */
    @WorkerThread
    public float[] embed(int[] tokens, Pooling pooling, boolean normalise) {
        float[] row = new float[model.getOutputWidth()];
        embed(handle(), tokens, tokens.length, pooling.ordinal(), normalise, row);
        return row;
    }

    /**
     * Ends the run of this session that is under way, or the next one: it throws {@link OxbowException#CANCELLED}. The
     * one method that may be called while another thread uses the session. A run that was ended half-way leaves the
     * session refusing to run until {@link #reset}, {@link #load} or {@link #rewind}.
     */
    @AnyThread
    public void cancel() {
        cancel(handle());
    }

    /** Back to the empty stream. */
    public void reset() {
        reset(handle());
    }

    /** {@return tokens fed since the last reset} */
    public long getPosition() {
        return position(handle());
    }

    /** {@return bytes of the arena} */
    public long getArenaBytes() {
        return arenaBytes(handle());
    }

    /** {@return bytes that a library behind the backend took beside the arena; 0 for this library's own backends} */
    public long getBackendBytes() {
        return backendBytes(handle());
    }

    /**
     * {@return the compiled shaders of the session's device; empty without a device} To be stored and given to later
     * sessions with {@link SessionOptions#pipelineCache}.
     */
    public byte[] getPipelineCache() {
        return pipelineCache(handle());
    }

    /** {@return what the accelerator has done since this session was created with {@link SessionOptions#npu}} */
    public NpuReport getNpuReport() {
        long[] numbers = new long[NpuReport.COUNT];
        float[] difference = new float[1];
        byte[] failure = npuReport(handle(), numbers, difference);
        return new NpuReport(numbers, difference[0], failure == null ? null : Text.decode(failure));
    }

    /** {@return who computes each step: the names of backends} */
    public List<String> getStepProviders() {
        List<String> names = new ArrayList<>();
        for (byte[] name; (name = stepProvider(handle(), names.size())) != null; ) {
            names.add(Text.decode(name));
        }
        return names;
    }

    /** {@return names of what can be looked into: states, and outputs beside the main one} */
    public List<String> getTensorNames() {
        List<String> names = new ArrayList<>();
        long[] numbers = new long[TensorInfo.COUNT];
        for (int i = tensorCount(handle()); i > 0; --i) {
            names.add(0, Text.decode(tensorInfo(handle(), i - 1, numbers)));
        }
        return names;
    }

    /**
     * A state or an output; a name that there is not is refused.
     *
     * @param name one of {@link #getTensorNames}
     * @return its shape
     */
    public TensorInfo getTensor(String name) {
        long[] numbers = new long[TensorInfo.COUNT];
        tensorInfo(handle(), findTensor(handle(), Text.encode(name)), numbers);
        return new TensorInfo(name, numbers);
    }

    /**
     * The rows of a state or an output that are filled, the oldest first.
     *
     * @param name one of {@link #getTensorNames}
     * @param values a direct buffer, which gets floats in native order
     */
    public void readTensor(String name, ByteBuffer values) {
        DirectBuffers.checkFloats(values, 0, "the buffer for the tensor");
        readTensor(handle(), findTensor(handle(), Text.encode(name)), values, values.position(), values.remaining());
    }

    /**
     * Native memory that a draft takes.
     *
     * @param tokens that it has at most
     * @return its bytes
     */
    public long getDraftBytes(int tokens) {
        return draftBytes(handle(), tokens);
    }

    /**
     * From here on all runs are a draft: {@link #keep} takes back what was not right. For speculation: a small model
     * guesses, one run of this one judges. The memory for it is allocated here and freed with the session or by the
     * next draft. Refused where states depend on how a stream is cut, and on a device.
     *
     * @param tokens that it has at most
     */
    public void draft(int tokens) {
        draft(handle(), tokens);
    }

    /**
     * Ends the draft.
     *
     * @param tokens the stream is what it would be after the first so many of it
     */
    public void keep(int tokens) {
        keep(handle(), tokens);
    }

    /** Bytes of a saved state, and of a checkpoint. The same at every position of the stream. */
    @Override
    public long getStateBytes() {
        return stateBytes(handle());
    }

    /** Writes the state with a checksum, to be loaded into any session of the same model, also later. */
    @Override
    public void save(ByteBuffer state) {
        DirectBuffers.checkWritable(state, "the buffer for the state");
        state(handle(), SAVE, state, state.position(), state.remaining());
    }

    /** Continues where {@link #save} was called. A refused state changes nothing. */
    @Override
    public void load(ByteBuffer state) {
        DirectBuffers.checkReadable(state, "the state");
        state(handle(), LOAD, state, state.position(), state.remaining());
    }

    /**
     * As {@link #save} without the checksum, at the speed of a copy.
     *
     * @param state a direct buffer that stays in this process
     */
    public void checkpoint(ByteBuffer state) {
        DirectBuffers.checkWritable(state, "the buffer for the checkpoint");
        state(handle(), CHECKPOINT, state, state.position(), state.remaining());
    }

    /**
     * Back to where {@link #checkpoint} was called.
     *
     * @param state what it wrote
     */
    public void rewind(ByteBuffer state) {
        DirectBuffers.checkReadable(state, "the checkpoint");
        state(handle(), REWIND, state, state.position(), state.remaining());
    }

    private native long create(
            long model,
            SessionOptions options,
            long[] numbers,
            byte[] pipelineCache,
            ByteBuffer arena,
            int position,
            int length);

    private native void feed(long handle, int[] tokens, int offset, int count);

    private native void feedOne(long handle, int token);

    private native int sample(long handle, Sampler sampler, long samplerHandle);

    private native void readLogits(long handle, ByteBuffer logits, int position, int length);

    private native void run(
            long handle, int[] tokens, int offset, int count, ByteBuffer logits, int position, int length, int rows);

    private native void runEntry(
            long handle,
            int entry,
            int inputs,
            byte[][] names,
            ByteBuffer[] buffers,
            int[] positions,
            int[] lengths,
            int[] rows);

    private native void runBatch(
            long handle, int[] tokens, int[] lengths, ByteBuffer output, int position, int length);

    private static native void runTogether(
            Session[] sessions, long[] handles, int[] tokens, ByteBuffer logits, int position, int length);

    private native void copy(long handle, Session other, long otherHandle);

    private native byte[] npuReport(long handle, long[] numbers, float[] difference);

    private native byte[] stepProvider(long handle, int step);

    private native byte[] pipelineCache(long handle);

    private native int tensorCount(long handle);

    private native int findTensor(long handle, byte[] name);

    private native byte[] tensorInfo(long handle, int index, long[] info);

    private native void readTensor(long handle, int index, ByteBuffer values, int position, int length);

    private native long draftBytes(long handle, int tokens);

    private native void draft(long handle, int tokens);

    private native void keep(long handle, int tokens);

    private native void encode(long handle, int[] tokens, int count);

    private native void embed(long handle, int[] tokens, int count, int pooling, boolean normalise, float[] row);

    private native void cancel(long handle);

    private native void reset(long handle);

    private native long position(long handle);

    private native long arenaBytes(long handle);

    private native long backendBytes(long handle);

    private native long stateBytes(long handle);

    private native void state(long handle, int way, ByteBuffer state, int position, int length);
}
