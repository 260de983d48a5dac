package dev.oxbow;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.io.IOException;
import java.util.Arrays;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.Test;

public class TokenizerTest extends Fixture {
    /** Emoji are four bytes and two Java characters. */
    private static final String TEXT = "The \ud83c\udf0a river, f\u00fcr \u6cb3 \ud83d\udc69\u200d\ud83d\ude80!";
    /** NUL ends a C string. */
    private static final String NUL = "be\0fore";

    @Test
    public void tokensAreThoseOfTheCommandLine() throws IOException {
        for (String name : new String[] {"gpt2", "chat"}) {
            try (Model model = open(name + ".oxb");
                    Tokenizer tokenizer = Tokenizer.create(model)) {
                assertArrayEquals(readIds(name + ".prompt.ids"), tokenizer.encode(read("unicode.txt")));
            }
        }
    }

    @Test
    public void textComesBack() {
        for (String name : new String[] {"gpt2.oxb", "chat.oxb"}) {
            try (Model model = open(name);
                    Tokenizer tokenizer = Tokenizer.create(model)) {
                int[] ids = tokenizer.encode(TEXT);
                assertEquals(TEXT, tokenizer.decode(ids));
                int[] padded = new int[ids.length + 2];
                System.arraycopy(ids, 0, padded, 1, ids.length);
                assertEquals(TEXT, tokenizer.decode(padded, 1, ids.length));
                assertEquals("", tokenizer.decode(new int[0]));
            }
        }
    }

    @Test
    public void aTextMayHaveNul() {
        try (Model model = open("chat.oxb");
                Tokenizer tokenizer = Tokenizer.create(model)) {
            assertEquals(NUL, tokenizer.decode(tokenizer.encode(NUL)));
        }
    }

    @Test
    public void longTextsGoInPieces() {
        StringBuilder text = new StringBuilder();
        while (text.length() < 300_000) {
            text.append(TEXT).append(' ').append(text.length()).append('\n');
        }
        try (Model model = open("gpt2.oxb");
                Tokenizer tokenizer = Tokenizer.create(model)) {
            assertEquals(text.toString(), tokenizer.decode(tokenizer.encode(text.toString())));
        }
    }

    @Test
    public void whatIsNoTextIsRefused() {
        try (Model model = demo();
                Tokenizer tokenizer = Tokenizer.create(model)) {
            int[] good = tokenizer.encode("river");
            refused(OxbowException.INVALID_ARGUMENT, () -> tokenizer.encode("half \ud83c"));
            refused(OxbowException.TEXT_STOPPED, () -> tokenizer.encode("no such character: \u6cb3"));
            refused(OxbowException.INVALID_ARGUMENT, () -> tokenizer.decode(new int[] {good[0], model.getVocabulary()}));
            refused(OxbowException.INVALID_ARGUMENT, () -> tokenizer.decode(new int[] {-1}));
            refused(OxbowException.INVALID_ARGUMENT, () -> tokenizer.decode(good, 1, good.length));
            refused(
                    OxbowException.INVALID_ARGUMENT,
                    () -> Tokenizer.create(model, new TokenizerOptions().maxWordBytes(-1)));
            // What was refused leaves nothing behind.
            assertArrayEquals(good, tokenizer.encode("river"));
            assertEquals("river", tokenizer.decode(good));
        }
    }

    @Test
    public void optionsDecideWhatSpecialTokensAre() {
        try (Model model = open("chat.oxb");
                Tokenizer all = Tokenizer.create(model);
                Tokenizer plain =
                        Tokenizer.create(model, new TokenizerOptions().addTemplate(false).parseSpecial(false));
                Tokenizer shown = Tokenizer.create(model, new TokenizerOptions().skipSpecial(false))) {
            int[] with = all.encode("a river");
            assertEquals(model.getStartToken(), with[0]);
            assertArrayEquals(Arrays.copyOfRange(with, 1, with.length), plain.encode("a river"));
            assertTrue(all.encode("</s>").length < plain.encode("</s>").length + 1);
            assertEquals("a river", all.decode(with));
            assertTrue(shown.decode(with), shown.decode(with).startsWith("<s>"));
        }
    }

    @Test
    public void threadsTakeTurns() throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(4);
        try (Model model = open("gpt2.oxb");
                Tokenizer tokenizer = Tokenizer.create(model)) {
            Future<?>[] all = new Future<?>[4];
            for (int i = 0; i < all.length; ++i) {
                String text = TEXT + i;
                all[i] =
                        threads.submit(
                                () -> {
                                    for (int n = 0; n < 50; ++n) {
                                        assertEquals(text, tokenizer.decode(tokenizer.encode(text)));
                                    }
                                });
            }
            for (Future<?> one : all) {
                one.get();
            }
        } finally {
            threads.shutdown();
        }
    }

    @Test
    public void aPairIsPutTogetherAsTheModelWantsIt() {
        try (Model model = open("bert.oxb");
                Tokenizer alone = Tokenizer.create(model);
                Tokenizer first = Tokenizer.create(model, new TokenizerOptions().firstOfPair());
                Tokenizer second = Tokenizer.create(model, new TokenizerOptions().secondOfPair())) {
            String question = "where is the river", passage = "the river is here";
            // [CLS] question [SEP], and then the passage [SEP].
            assertArrayEquals(alone.encode(question), first.encode(question));
            int[] whole = alone.encode(passage);
            assertArrayEquals(Arrays.copyOfRange(whole, 1, whole.length), second.encode(passage));
        }
        try (Model model = demo()) {
            refused(
                    OxbowException.INVALID_ARGUMENT,
                    () -> Tokenizer.create(model, new TokenizerOptions().secondOfPair()));
        }
    }
}
