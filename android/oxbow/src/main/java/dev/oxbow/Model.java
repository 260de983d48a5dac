package dev.oxbow;

import androidx.annotation.WorkerThread;
import java.io.File;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A model file, mapped and verified. Weights are used where they lie; opening does not read them. Any threads may use a
 * model at once, and any number of sessions. The file stays mapped until the model and everything made from it is
 * closed.
 */
public final class Model extends NativeObject {
    // Places in the array of the native code.
    private static final int VOCABULARY = 0;
    private static final int MAX_SEGMENT = 1;
    private static final int FILE_BYTES = 2;
    private static final int WEIGHT_BYTES = 3;
    private static final int PARAMETERS = 4;
    private static final int MACS_PER_TOKEN = 5;
    private static final int HASH = 6;
    private static final int TOKENIZER = 7;
    private static final int TASK = 8;
    private static final int OUTPUT_WIDTH = 9;
    private static final int START_TOKEN = 10;
    private static final int END_TOKEN = 11;
    private static final int PAD_TOKEN = 12;
    private static final int MASK_TOKEN = 13;
    private static final int CAPACITY = 14;
    private static final int LABEL_COUNT = 15;
    private static final int ENTRY_COUNT = 16;
    private static final int METADATA_COUNT = 17;
    private static final int INFO_COUNT = 18;

    // Texts of the native code.
    private static final int ARCHITECTURE = 0;
    private static final int CHAT_BEFORE = 1;
    private static final int CHAT_AFTER = 2;
    private static final int LABEL = 3;
    private static final int METADATA_KEY = 4;
    private static final int METADATA_VALUE = 5;

    private final long[] info = new long[INFO_COUNT];
    private volatile List<EntryPoint> entries;

    private Model() {}

    private Model opened(long handle) {
        own(handle);
        readInfo(handle, info);
        return this;
    }

    /**
     * Opens a file, as {@link OpenOptions} are unless they are set.
     *
     * @param path of the file
     * @return the model
     */
    @WorkerThread
    public static Model open(String path) {
        return open(path, new OpenOptions());
    }

    /**
     * Opens a file with options.
     *
     * @param path of the file
     * @param options how to open it
     * @return the model
     */
    @WorkerThread
    public static Model open(String path, OpenOptions options) {
        byte[] bytes = Text.encode(path);
        for (byte b : bytes) {
            if (b == 0) {
                throw OxbowException.invalid("the path has a NUL character");
            }
        }
        Model model = new Model();
        return model.opened(
                openFile(
                        bytes,
                        options.access.ordinal(),
                        options.prefetch,
                        options.checkWeights,
                        options.memory,
                        position(options.memory),
                        remaining(options.memory),
                        sink(options),
                        options.session,
                        numbers(options)));
    }

    /**
     * Opens a file, as {@link OpenOptions} are unless they are set.
     *
     * @param file where it is
     * @return the model
     */
    @WorkerThread
    public static Model open(File file) {
        return open(file.getPath());
    }

    /**
     * Opens a file with options.
     *
     * @param file where it is
     * @param options how to open it
     * @return the model
     */
    @WorkerThread
    public static Model open(File file, OpenOptions options) {
        return open(file.getPath(), options);
    }

    /**
     * Opens part of an open file, such as what an {@code AssetFileDescriptor} tells.
     *
     * @param fd may be closed afterwards
     * @param offset a multiple of 64, which zipalign can see to
     * @param length of the entry, which must be stored, not compressed
     * @return the model
     */
    @WorkerThread
    public static Model open(int fd, long offset, long length) {
        return open(fd, offset, length, new OpenOptions());
    }

    /**
     * Opens part of an open file with options.
     *
     * @param fd may be closed afterwards
     * @param offset a multiple of 64
     * @param length bytes from there on
     * @param options how to open it
     * @return the model
     */
    @WorkerThread
    public static Model open(int fd, long offset, long length, OpenOptions options) {
        if (offset < 0 || length < 0) {
            throw OxbowException.invalid("offset " + offset + " and length " + length);
        }
        Model model = new Model();
        return model.opened(
                openDescriptor(
                        fd,
                        offset,
                        length,
                        options.access.ordinal(),
                        options.prefetch,
                        options.checkWeights,
                        options.memory,
                        position(options.memory),
                        remaining(options.memory),
                        sink(options),
                        options.session,
                        numbers(options)));
    }

    /**
     * Opens what lies between position and limit of a direct buffer. The native side keeps the buffer alive.
     *
     * @param bytes begin at an address aligned to 64 (see {@link DirectBuffers#allocate}; a mapped file does) and must
     *     not be changed until the model is closed
     * @return the model
     */
    @WorkerThread
    public static Model open(ByteBuffer bytes) {
        return open(bytes, new OpenOptions());
    }

    /**
     * Opens what lies between position and limit of a direct buffer, with options.
     *
     * @param bytes as {@link #open(ByteBuffer)} wants them
     * @param options of which those about a file are ignored
     * @return the model
     */
    @WorkerThread
    public static Model open(ByteBuffer bytes, OpenOptions options) {
        DirectBuffers.checkReadable(bytes, "the model");
        Model model = new Model();
        return model.opened(
                openMemory(
                        bytes,
                        bytes.position(),
                        bytes.remaining(),
                        options.checkWeights,
                        sink(options),
                        options.session,
                        numbers(options)));
    }

    /** {@return the name of the architecture, as in "llama"} */
    public String getArchitecture() {
        return Text.decode(text(handle(), ARCHITECTURE, 0));
    }

    /** {@return what it is for} */
    public Task getTask() {
        return Task.of(info[TASK]);
    }

    /** {@return what token ids are below} */
    public int getVocabulary() {
        return (int) info[VOCABULARY];
    }

    /** {@return how many tokens one {@link Session#run run} takes at most} */
    public int getMaxSegment() {
        return (int) info[MAX_SEGMENT];
    }

    /**
     * {@return how many numbers a row of the output has: the vocabulary of a generator, the classes of a classifier}
     */
    public int getOutputWidth() {
        return (int) info[OUTPUT_WIDTH];
    }

    /** {@return how many tokens a stream may have; 0: it is endless} */
    public long getCapacity() {
        return info[CAPACITY];
    }

    /** {@return bytes of the file} */
    public long getFileBytes() {
        return info[FILE_BYTES];
    }

    /** {@return bytes of the file that are weights} */
    public long getWeightBytes() {
        return info[WEIGHT_BYTES];
    }

    /** {@return how many numbers were trained} */
    public long getParameters() {
        return info[PARAMETERS];
    }

    /** {@return multiplications with weights for one token} */
    public long getMacsPerToken() {
        return info[MACS_PER_TOKEN];
    }

    /** {@return what identifies the file's content; saved states are tied to it} */
    public long getHash() {
        return info[HASH];
    }

    /** {@return whether texts can be turned to tokens and back} */
    public boolean hasTokenizer() {
        return info[TOKENIZER] != 0;
    }

    /** {@return how its tokenizer cuts text} */
    public TokenizerKind getTokenizerKind() {
        return TokenizerKind.of(info[TOKENIZER]);
    }

    /** {@return what a text starts with; -1: nothing} */
    public int getStartToken() {
        return (int) info[START_TOKEN];
    }

    /** {@return what a text ends with; -1: nothing} There may be more: see {@link #endsText}. */
    public int getEndToken() {
        return (int) info[END_TOKEN];
    }

    /** {@return what fills the end of a text; -1: nothing} */
    public int getPadToken() {
        return (int) info[PAD_TOKEN];
    }

    /** {@return what stands for a word to be filled in; -1: nothing} */
    public int getMaskToken() {
        return (int) info[MASK_TOKEN];
    }

    /** {@return how many of a classifier's classes the file knows by name} */
    public int getLabelCount() {
        return (int) info[LABEL_COUNT];
    }

    /**
     * The name of a class.
     *
     * @param index below {@link #getLabelCount}
     * @return the name
     */
    public String getLabel(int index) {
        if (index < 0 || index >= getLabelCount()) {
            throw OxbowException.invalid("label " + index + " of " + getLabelCount());
        }
        return Text.decode(text(handle(), LABEL, index));
    }

    /**
     * What the file says of itself.
     *
     * @param key "architecture", "licence", "converter", "source_hash", "settings.KEY", "sizes.KEY" or "quality.KEY"
     * @return what it says; null when it has no such key
     */
    public @Nullable String getMetadata(String key) {
        byte[] found = metadata(handle(), Text.encode(key));
        return found == null ? null : Text.decode(found);
    }

    /** {@return all that the file says of itself} */
    public Map<String, String> getAllMetadata() {
        Map<String, String> all = new LinkedHashMap<>();
        for (int i = 0; i < (int) info[METADATA_COUNT]; ++i) {
            all.put(Text.decode(text(handle(), METADATA_KEY, i)), Text.decode(text(handle(), METADATA_VALUE, i)));
        }
        return Collections.unmodifiableMap(all);
    }

    /** {@return the parts of the model that can be run} {@link Session#run} runs the last. */
    public List<EntryPoint> getEntries() {
        List<EntryPoint> read = entries;
        if (read == null) {
            read = new ArrayList<>();
            for (int i = 0; i < (int) info[ENTRY_COUNT]; ++i) {
                read.add(readEntry(i));
            }
            entries = read = Collections.unmodifiableList(read);
        }
        return read;
    }

    /**
     * A part of the model; a name that there is not is refused.
     *
     * @param name what {@link EntryPoint#getName} gives
     * @return the part
     */
    public EntryPoint getEntry(String name) {
        for (EntryPoint entry : getEntries()) {
            if (entry.getName().equals(name)) {
                return entry;
            }
        }
        throw OxbowException.invalid("the model has no entry point '" + name + "'");
    }

    private EntryPoint readEntry(int entry) {
        long[] numbers = new long[EntryPoint.INFO_COUNT];
        String name = Text.decode(entryInfo(handle(), entry, numbers));
        List<EntryInput> inputs = new ArrayList<>();
        for (int i = 0; i < (int) numbers[EntryPoint.INPUT_COUNT]; ++i) {
            long[] of = new long[EntryInput.INFO_COUNT];
            inputs.add(new EntryInput(Text.decode(inputInfo(handle(), entry, i, of)), of));
        }
        List<EntryOutput> outputs = new ArrayList<>();
        for (int i = 0; i < (int) numbers[EntryPoint.OUTPUT_COUNT]; ++i) {
            long[] of = new long[EntryOutput.INFO_COUNT];
            outputs.add(new EntryOutput(Text.decode(outputInfo(handle(), entry, i, of)), of));
        }
        return new EntryPoint(entry, name, numbers, inputs, outputs);
    }

    /** {@return what a model that was trained to answer wants before a question; empty when it was not} */
    public String getChatBefore() {
        return Text.decode(text(handle(), CHAT_BEFORE, 0));
    }

    /** {@return what it wants behind a question} */
    public String getChatAfter() {
        return Text.decode(text(handle(), CHAT_AFTER, 0));
    }

    /**
     * Whether a text ends with a token.
     *
     * @param token of the vocabulary
     * @return whether it does
     */
    public boolean endsText(int token) {
        return endsText(handle(), token);
    }

    /**
     * A token as the vocabulary has it.
     *
     * @param token of the vocabulary
     * @return its bytes, which need not be whole characters
     */
    public byte[] getTokenBytes(int token) {
        return tokenBytes(handle(), token);
    }

    /** Reads all weights and compares them with the checksum in the file. */
    @WorkerThread
    public void checkWeights() {
        checkWeights(handle());
    }

    /**
     * The arena that a session needs: all it will ever use.
     *
     * @param options of that session
     * @return its bytes
     */
    public long getArenaBytes(SessionOptions options) {
        return getPlan(options).getArenaBytes();
    }

    /**
     * All that a session takes. With {@link Backend#VULKAN} this opens the device, and is refused with {@link
     * OxbowException#NO_DEVICE} where there is none.
     *
     * @param options of that session
     * @return its memory, by what it is for
     */
    public SessionPlan getPlan(SessionOptions options) {
        long[] bytes = new long[SessionPlan.COUNT];
        plan(handle(), options, options.numbers(), bytes);
        return new SessionPlan(bytes);
    }

    /**
     * {@return how to pick tokens, as the model's makers advise; the defaults of {@link SamplerOptions} where they did
     * not}
     */
    public SamplerOptions getAdvisedSampling() {
        SamplerOptions options = new SamplerOptions();
        double[] values = new double[5];
        advisedSampling(handle(), values);
        return options.temperature((float) values[0])
                .topK((int) values[1])
                .topP((float) values[2])
                .repetitionPenalty((float) values[3])
                .repetitionWindow((int) values[4]);
    }

    /**
     * {@return how to search for texts, as the model's makers advise; the defaults of {@link BeamOptions} where they
     * did not}
     */
    public BeamOptions getAdvisedBeams() {
        double[] values = new double[3];
        advisedBeams(handle(), values);
        BeamOptions options = new BeamOptions().beams((int) values[0]).lengthPenalty(values[1]);
        BeamStop stop = BeamStop.of((long) values[2]);
        return stop == BeamStop.UNKNOWN ? options : options.stop(stop);
    }

    private static LogSink sink(OpenOptions options) {
        return options.log == null ? null : new LogSink(options.log);
    }

    private static int position(ByteBuffer memory) {
        return memory == null ? 0 : memory.position();
    }

    private static int remaining(ByteBuffer memory) {
        return memory == null ? 0 : memory.remaining();
    }

    /** Of the session to plan for; null for the default one. */
    private static long[] numbers(OpenOptions options) {
        return options.session == null ? null : options.session.numbers();
    }

    private static native long openFile(
            byte[] path,
            int access,
            boolean prefetch,
            boolean checkWeights,
            ByteBuffer memory,
            int position,
            int length,
            LogSink log,
            SessionOptions session,
            long[] numbers);

    private static native long openDescriptor(
            int fd,
            long offset,
            long bytes,
            int access,
            boolean prefetch,
            boolean checkWeights,
            ByteBuffer memory,
            int position,
            int length,
            LogSink log,
            SessionOptions session,
            long[] numbers);

    private static native long openMemory(
            ByteBuffer bytes,
            int position,
            int length,
            boolean checkWeights,
            LogSink log,
            SessionOptions session,
            long[] numbers);

    // Not static, as in all these classes: a running call keeps its object from being collected and freed.
    private native void readInfo(long handle, long[] info);

    private native byte[] text(long handle, int which, int index);

    private native byte[] metadata(long handle, byte[] key);

    private native boolean endsText(long handle, int token);

    private native byte[] tokenBytes(long handle, int token);

    private native void checkWeights(long handle);

    private native void plan(long handle, SessionOptions options, long[] numbers, long[] bytes);

    private native byte[] entryInfo(long handle, int entry, long[] info);

    private native byte[] inputInfo(long handle, int entry, int input, long[] info);

    private native byte[] outputInfo(long handle, int entry, int output, long[] info);

    private native void advisedBeams(long handle, double[] values);

    private native void advisedSampling(long handle, double[] values);
}
