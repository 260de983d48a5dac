package dev.oxbow;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Objects;

/** Text to tokens and back, with the tokenizer in the model's file. Threads may share one; they take turns. */
public final class Tokenizer extends NativeObject {
    /** Tokens taken from the native side at a time. */
    private static final int IDS = 1024;

    private final Model model;
    private final Object turn = new Object();

    private Tokenizer(Model model) {
        this.model = model;
    }

    /** As the model's makers cut text. */
    public static Tokenizer create(Model model) {
        return create(model, new TokenizerOptions());
    }

    /** The same with options. */
    public static Tokenizer create(Model model, TokenizerOptions options) {
        Tokenizer tokenizer = new Tokenizer(Objects.requireNonNull(model));
        tokenizer.own(
                tokenizer.create(
                        model.handle(),
                        options.addTemplate,
                        options.parseSpecial,
                        options.skipSpecial,
                        options.maxWordBytes));
        return tokenizer;
    }

    /** The model whose vocabulary it has. */
    public Model getModel() {
        return model;
    }

    /** The tokens of a text. Half a surrogate pair, and text that the vocabulary cannot express, is refused. */
    public int[] encode(String text) {
        byte[] bytes = Text.encode(text);
        int[] some = new int[IDS];
        int[] all = new int[0];
        synchronized (turn) {
            restart(handle());
            int count = 0;
            int taken = 0;
            for (boolean over = false; !over; ) {
                long step = encode(handle(), bytes, taken, bytes.length - taken, some);
                over = isOver(step);
                taken += taken(step);
                int written = written(step);
                if (count + written > all.length) {
                    all = Arrays.copyOf(all, Math.max(count + written, 2 * all.length));
                }
                System.arraycopy(some, 0, all, count, written);
                count += written;
            }
            return Arrays.copyOf(all, count);
        }
    }

    /** The text of tokens that follow each other. Bytes that are no characters become U+FFFD. */
    public String decode(int[] tokens) {
        return decode(tokens, 0, tokens.length);
    }

    /** The same for part of an array. */
    public String decode(int[] tokens, int offset, int count) {
        DirectBuffers.checkRange(tokens.length, offset, count, "tokens");
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        synchronized (turn) {
            restart(handle());
            byte[] some = new byte[textBytes(handle())];
            int taken = 0;
            for (boolean over = false; !over; ) {
                long step = decode(handle(), tokens, offset + taken, count - taken, some);
                over = isOver(step);
                taken += taken(step);
                all.write(some, 0, written(step));
            }
        }
        return new String(all.toByteArray(), StandardCharsets.UTF_8);
    }

    // What a step of the native side tells: in the sign whether the text is over, then how much of the input it took,
    // then how much output it wrote.
    private static boolean isOver(long step) {
        return step < 0;
    }

    private static int taken(long step) {
        return (int) (step >>> 32) & Integer.MAX_VALUE;
    }

    private static int written(long step) {
        return (int) step;
    }

    private native long create(
            long model, int addTemplate, boolean parseSpecial, boolean skipSpecial, int maxWordBytes);

    /** Forgets what an earlier text that was refused left behind. */
    private native void restart(long handle);

    private native long encode(long handle, byte[] text, int offset, int length, int[] ids);

    /** Room that decode() needs. */
    private native int textBytes(long handle);

    private native long decode(long handle, int[] ids, int offset, int count, byte[] text);
}
