package dev.oxbow;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.io.IOException;
import java.util.List;
import java.util.Locale;
import org.junit.Test;

/** One call, one answer: those of the command line. */
public class TextModelTest extends Fixture {
    private static TextModel openText(String name) {
        return TextModel.open(FILES.resolve(name).toString());
    }

    private static String lines(List<Scored> answers) {
        StringBuilder all = new StringBuilder();
        for (Scored answer : answers) {
            all.append(String.format(Locale.ROOT, "%.6f  %s%n", answer.getProbability(), answer.getText()));
        }
        return all.toString();
    }

    @Test
    public void classesAreThoseOfTheCommandLine() throws IOException {
        try (TextModel model = openText("classes.oxb")) {
            List<Scored> classes = model.classify("river");
            assertEquals(read("classes.txt"), lines(classes));
            assertEquals(model.getModel().getOutputWidth(), classes.size());
            refused(OxbowException.INVALID_ARGUMENT, () -> model.translate("river"));
            refused(OxbowException.INVALID_ARGUMENT, () -> model.fillMask("river", 1));
            refused(OxbowException.INVALID_ARGUMENT, () -> model.embed("river"));
        }
    }

    @Test
    public void vectorsAreThoseOfTheCommandLine() throws IOException {
        try (TextModel model = openText("vectors.oxb")) {
            for (String text : new String[] {"river", "thestreamthatneverends"}) {
                String[] numbers = read("vectors." + text + ".txt").trim().split(" ");
                float[] expected = new float[numbers.length];
                for (int i = 0; i < expected.length; ++i) {
                    expected[i] = Float.parseFloat(numbers[i]);
                }
                assertArrayEquals(expected, model.embed(text), 0f);
            }
            refused(OxbowException.INVALID_ARGUMENT, () -> model.classify("river"));
        }
    }

    @Test
    public void gapsAreFilledAsByTheCommandLine() throws IOException {
        try (TextModel model = openText("bert.oxb")) {
            assertEquals("[MASK]", model.getMask());
            String all = read("gap.txt");
            List<Scored> words = model.fillMask("the [MASK] river", 5);
            assertEquals(5, words.size());
            for (Scored word : words) {
                String line = String.format(Locale.ROOT, "  %.6f  %s%n", word.getProbability(), word.getText());
                assertTrue(line, all.contains(line));
            }
            String refusal = refused(OxbowException.INVALID_ARGUMENT, () -> model.fillMask("the river", 5));
            assertEquals("the text has no gap: write [MASK] where a word is missing", refusal);
            assertTrue(model.fillMask("the [MASK] river", 0).isEmpty());
        }
    }

    @Test
    public void translationsAreThoseOfTheCommandLine() throws IOException {
        try (TextModel model = openText("t5.oxb")) {
            String expected = read("t5.translation.txt").trim();
            assertEquals(expected, model.translate("The river is long."));
            assertEquals("again", expected, model.translate("The river is long."));
        }
    }

    @Test
    public void aModelWithoutATokenizerIsRefusedAndClosed() {
        refused(OxbowException.INVALID_ARGUMENT, () -> openText("numbers.oxb"));
    }

    @Test
    public void aTextWithoutTokensAndOneThatIsTooLongAreRefused() {
        try (TextModel model = openText("classes.oxb")) {
            refused(OxbowException.INVALID_ARGUMENT, () -> model.classify(""));
            StringBuilder text = new StringBuilder();
            for (int i = 0; i <= model.getModel().getMaxSegment(); ++i) {
                text.append('a');
            }
            String refusal = refused(OxbowException.INVALID_ARGUMENT, () -> model.classify(text.toString()));
            assertTrue(refusal, refusal.contains("at most"));
        }
    }
}
