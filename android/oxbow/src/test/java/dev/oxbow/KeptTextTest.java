package dev.oxbow;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;

import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import org.junit.Rule;
import org.junit.Test;
import org.junit.rules.TemporaryFolder;

/** Texts that are put aside and go on; states as arrays and files. */
public class KeptTextTest extends Fixture {
    private static final GeneratorOptions FIFTY = new GeneratorOptions().maxTokens(50);

    @Rule public final TemporaryFolder temporary = new TemporaryFolder();

    private KeptText keep(Model model) {
        return new KeptText(model, new SessionOptions(), FIFTY, new File(temporary.getRoot(), "text.state"));
    }

    private static String more(KeptText text) throws IOException {
        StringBuilder all = new StringBuilder();
        text.generator()
                .generate(
                        new int[0],
                        piece -> {
                            all.append(piece);
                            return true;
                        },
                        new Cancellation());
        return all.toString();
    }

    /** Put aside after every part, once by another object, as in another process. */
    @Test
    public void aTextGoesOnAsIfItHadNotBeenPutAside() throws IOException {
        try (Model model = demo();
                KeptText whole = keep(model)) {
            String expected = whole.generator().generateText("And the river") + more(whole) + more(whole);
            whole.forget();
            whole.close();
            String text;
            try (KeptText kept = keep(model)) {
                text = kept.generator().generateText("And the river");
                assertTrue(kept.isOpen());
                assertFalse("the app is still seen", kept.onTrimMemory(20));
                assertTrue(kept.onTrimMemory(40));
                assertFalse(kept.isOpen());
                assertFalse("nothing is left to give", kept.onTrimMemory(80));
                text += more(kept);
                kept.save();
            }
            try (KeptText kept = keep(model)) {
                assertEquals(expected, text + more(kept));
            }
        }
    }

    @Test
    public void aForgottenTextBeginsAnew() throws IOException {
        try (Model model = demo();
                KeptText kept = keep(model)) {
            String once = kept.generator().generateText("And the river");
            kept.putAside();
            kept.forget();
            assertEquals(once, kept.generator().generateText("And the river"));
            kept.save();
            kept.forget();
            assertEquals(once, kept.generator().generateText("And the river"));
        }
    }

    @Test
    public void aDamagedFileIsRefusedUntilItIsForgotten() throws IOException {
        File file = new File(temporary.getRoot(), "text.state");
        try (Model model = demo();
                KeptText kept = keep(model)) {
            String once = kept.generator().generateText("And the river");
            kept.putAside();
            try (RandomAccessFile damaged = new RandomAccessFile(file, "rw")) {
                damaged.seek(file.length() / 2);
                int old = damaged.read();
                damaged.seek(file.length() / 2);
                damaged.write(old ^ 1);
            }
            for (int i = 0; i < 2; ++i) {
                refused(
                        OxbowException.STATE_CORRUPT,
                        () -> {
                            kept.generator();
                            return null;
                        });
                assertFalse(kept.isOpen());
            }
            kept.forget();
            assertEquals(once, kept.generator().generateText("And the river"));
        }
    }

    @Test
    public void statesAreArraysAndFiles() throws IOException {
        File file = new File(temporary.getRoot(), "stream.state");
        try (Model model = demo();
                Session first = Session.create(model);
                Session second = Session.create(model)) {
            first.feed(readIds("prompt.ids"));
            byte[] state = first.save();
            assertEquals(first.getStateBytes(), state.length);
            first.save(file);
            assertEquals(state.length, file.length());
            second.load(state);
            assertEquals(first.getPosition(), second.getPosition());
            second.reset();
            second.load(file);
            assertEquals(first.getPosition(), second.getPosition());
            assertArrayEquals(state, second.save());
            refused(OxbowException.STATE_CORRUPT, () -> second.load(new byte[10]));
            assertEquals("only the state is left", 1, temporary.getRoot().list().length);
        }
    }

    @Test
    public void aStateThatCannotBeWrittenLeavesTheOldOne() throws IOException {
        File folder = temporary.newFolder("full");
        File file = new File(folder, "stream.state");
        try (Model model = demo();
                Session session = Session.create(model)) {
            session.save(file);
            long before = file.lastModified();
            // A folder where the new one would be written.
            assertTrue(new File(folder, "stream.state.part").mkdir());
            try {
                session.save(file);
                throw new AssertionError("it was written");
            } catch (IOException expected) {
                assertEquals(before, file.lastModified());
                session.load(file);
            }
        }
    }
}
