package dev.oxbow;

import androidx.annotation.WorkerThread;
import java.io.Closeable;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Objects;

/**
 * A model, a session and a tokenizer together, for one answer to one text: its class, its vector, its translation, or the word
 * that is missing. Which of them a model gives tells {@link Model#getTask}; another is refused. Serves one thread at a time.
 */
public final class TextModel implements Closeable {
    private final Model model;
    private final Session session;
    private final Tokenizer tokenizer;

    private TextModel(Model model, Session session, Tokenizer tokenizer) {
        this.model = model;
        this.session = session;
        this.tokenizer = tokenizer;
    }

    /**
     * Opens a file for a session of one thread.
     *
     * @param path of the file
     * @return the model, ready to answer
     */
    @WorkerThread
    public static TextModel open(String path) {
        return open(path, new SessionOptions());
    }

    /**
     * Opens a file for a session with options.
     *
     * @param path of the file
     * @param options of the session
     * @return the model, ready to answer
     */
    @WorkerThread
    public static TextModel open(String path, SessionOptions options) {
        return open(Model.open(path, new OpenOptions().session(options)), options);
    }

    /**
     * Takes a model that is open.
     *
     * @param model is closed with this object, or here if this fails
     * @param options of the session
     * @return the model, ready to answer
     */
    @WorkerThread
    public static TextModel open(Model model, SessionOptions options) {
        Session session = null;
        Tokenizer tokenizer = null;
        try {
            session = Session.create(model, options);
            tokenizer = Tokenizer.create(model);
            return new TextModel(model, session, tokenizer);
        } finally {
            if (tokenizer == null) {
                if (session != null) {
                    session.close();
                }
                model.close();
            }
        }
    }

    /** {@return the model; it is closed with this object} */
    public Model getModel() {
        return model;
    }

    /** {@return the session; it is closed with this object} */
    public Session getSession() {
        return session;
    }

    /**
     * What kind of text it is. A model with one number instead of classes is refused: run its session.
     *
     * @param text as people write it
     * @return all classes, the likeliest first
     */
    @WorkerThread
    public List<Scored> classify(String text) {
        want(Task.CLASSIFY, "tells no classes");
        int[] tokens = read(text, model.getMaxSegment());
        int width = model.getOutputWidth();
        if (width < 2) {
            throw OxbowException.invalid("the model gives one number and no classes");
        }
        ByteBuffer logits = DirectBuffers.allocate(width * Float.BYTES);
        session.run(tokens, 0, tokens.length, logits, 1);
        double[] shares = shares(logits, width);
        List<Scored> classes = new ArrayList<>(width);
        for (int index : bestFirst(shares, width)) {
            String name = index < model.getLabelCount() ? model.getLabel(index) : String.valueOf(index);
            classes.add(new Scored(index, name, shares[index]));
        }
        return classes;
    }

    /**
     * A row for a text, made as the model's makers do: pooling, length 1 or not, and the words before a text come from
     * the file. Where it says nothing of pooling, it is refused: {@link Session#embed} takes it.
     *
     * @param text what the model does not read any more is cut behind
     * @return the row
     */
    @WorkerThread
    public float[] embed(String text) {
        String pooling = setting("pooling");
        if (pooling == null) {
            throw OxbowException.invalid(
                    "the file does not say how the rows of a text become one: call Session.embed with a Pooling");
        }
        String prompt = setting("default_prompt");
        String before = prompt == null ? null : setting("prompt." + prompt);
        String most = setting("max_tokens");
        int limit = model.getMaxSegment();
        int kept = most == null ? limit : Math.max(1, Math.min(limit, Integer.parseInt(most)));
        int[] tokens = tokenizer.encode(before == null ? text : before + text);
        if (tokens.length > kept) {
            tokens = cut(tokens, kept);
        }
        return session.embed(
                tokens, Pooling.valueOf(pooling.toUpperCase(Locale.ROOT)), "true".equals(setting("normalise")));
    }

    /**
     * Translates, searching as the model's makers advise.
     *
     * @param text as people write it
     * @return the likeliest translation
     */
    @WorkerThread
    public String translate(String text) {
        want(Task.TRANSLATE, "does not translate");
        int most = model.getEntries().get(0).getMaxRows();
        session.encode(withEnd(read(text, most), most));
        try (BeamSearch search = BeamSearch.create(session)) {
            List<BeamText> found = search.run();
            return found.isEmpty() ? "" : tokenizer.decode(found.get(0).getTokens()).trim();
        }
    }

    /**
     * Words for the first gap of a text.
     *
     * @param text with a gap, written as the model's own mask, such as "[MASK]": {@link #getMask} tells it
     * @param count words at most
     * @return the likeliest first
     */
    @WorkerThread
    public List<Scored> fillMask(String text, int count) {
        want(Task.FILL_MASK, "fills no gaps");
        int mask = model.getMaskToken();
        if (mask < 0) {
            throw OxbowException.invalid("the file does not say which token stands for a gap");
        }
        int[] tokens = read(text, model.getMaxSegment());
        int gap = 0;
        while (gap < tokens.length && tokens[gap] != mask) {
            ++gap;
        }
        if (gap == tokens.length) {
            throw OxbowException.invalid("the text has no gap: write " + getMask() + " where a word is missing");
        }
        int width = model.getOutputWidth();
        // The rows from the gap on: no more are wanted, and none fewer can be asked for.
        int rows = tokens.length - gap;
        ByteBuffer logits = DirectBuffers.allocate(Math.multiplyExact(Math.multiplyExact(rows, width), Float.BYTES));
        session.run(tokens, 0, tokens.length, logits, rows);
        double[] shares = shares(logits, width);
        List<Scored> words = new ArrayList<>();
        for (int token : bestFirst(shares, count)) {
            words.add(new Scored(token, word(token), shares[token]));
        }
        return words;
    }

    /** {@return what a gap is written as in a text; empty: the model fills none} */
    public String getMask() {
        return model.getMaskToken() < 0 ? "" : Text.decode(model.getTokenBytes(model.getMaskToken()));
    }

    @Override
    public void close() {
        tokenizer.close();
        session.close();
        model.close();
    }

    private void want(Task task, String otherwise) {
        if (model.getTask() != task) {
            throw OxbowException.invalid("the model " + otherwise + ": its task is " + model.getTask());
        }
    }

    private int[] read(String text, int most) {
        int[] tokens = tokenizer.encode(Objects.requireNonNull(text));
        if (tokens.length > most) {
            throw OxbowException.invalid("the text has " + tokens.length + " tokens; the model reads " + most + " at most");
        }
        if (tokens.length == 0) {
            throw OxbowException.invalid("the text has no tokens");
        }
        return tokens;
    }

    /** A text to translate ends with the model's end token; most tokenizers have put it there. */
    private int[] withEnd(int[] tokens, int most) {
        int end = model.getEndToken();
        if (end < 0 || tokens[tokens.length - 1] == end || tokens.length == most) {
            return tokens;
        }
        int[] ended = Arrays.copyOf(tokens, tokens.length + 1);
        ended[tokens.length] = end;
        return ended;
    }

    /** What the tokenizer puts behind a text stays behind it. */
    private int[] cut(int[] tokens, int count) {
        int[] around = tokenizer.encode("");
        int before = 0;
        while (before < around.length && tokens[before] == around[before]) {
            ++before;
        }
        int behind = Math.min(around.length - before, count);
        int[] kept = Arrays.copyOf(tokens, count);
        System.arraycopy(tokens, tokens.length - behind, kept, count - behind, behind);
        return kept;
    }

    private String setting(String key) {
        String value = model.getMetadata("settings.embed_" + key);
        return value == null || value.isEmpty() ? null : value;
    }

    /** A token as people read it: without the space it may begin with. */
    private String word(int token) {
        String text = tokenizer.decode(new int[] {token}).trim();
        return text.isEmpty() ? Text.decode(model.getTokenBytes(token)) : text;
    }

    private static double[] shares(ByteBuffer logits, int width) {
        double[] shares = new double[width];
        double top = Double.NEGATIVE_INFINITY;
        for (int i = 0; i < width; ++i) {
            shares[i] = logits.getFloat(i * Float.BYTES);
            top = Math.max(top, shares[i]);
        }
        double sum = 0;
        for (int i = 0; i < width; ++i) {
            shares[i] = Math.exp(shares[i] - top);
            sum += shares[i];
        }
        for (int i = 0; i < width; ++i) {
            shares[i] /= sum;
        }
        return shares;
    }

    private static List<Integer> bestFirst(double[] values, int count) {
        List<Integer> order = new ArrayList<>(values.length);
        for (int i = 0; i < values.length; ++i) {
            order.add(i);
        }
        // Stable: of equals the first.
        Collections.sort(order, (a, b) -> Double.compare(values[b], values[a]));
        return order.subList(0, Math.max(0, Math.min(count, values.length)));
    }
}
