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

    /**
     * A tokenizer that cuts text as the model's makers do.
     *
     * @param model whose vocabulary it has
     * @return the tokenizer
     */
    public static Tokenizer create(Model model) {
        return create(model, new TokenizerOptions());
    }

    /**
     * A tokenizer with options.
     *
     * @param model whose vocabulary it has
     * @param options what to do with special tokens
     * @return the tokenizer
     */
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

    /** {@return the model whose vocabulary it has} */
    public Model getModel() {
        return model;
    }

    /**
     * Cuts a text. Half a surrogate pair, and text that the vocabulary cannot express, is refused.
     *
     * @param text as people write it
     * @return its tokens
     */
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

    /**
     * Joins tokens that follow each other.
     *
     * @param tokens of the vocabulary
     * @return their text; bytes that are no characters become U+FFFD
     */
    public String decode(int[] tokens) {
        return decode(tokens, 0, tokens.length);
    }

    /**
     * Joins part of an array, as {@link #decode(int[])} does.
     *
     * @param tokens of the vocabulary
     * @param offset of the first in the array
     * @param count how many
     * @return their text
     */
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
