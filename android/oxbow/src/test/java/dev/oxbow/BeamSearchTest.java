package dev.oxbow;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import org.junit.Test;

public class BeamSearchTest extends Fixture {
    private static final String TEXT = "The river is long.";

    /** The text of a search, as the command line shows it. */
    private static String shown(Model model, Tokenizer tokenizer, BeamText text) {
        int[] tokens = text.getTokens();
        int end = 1;
        while (end < tokens.length && !model.endsText(tokens[end])) {
            ++end;
        }
        return tokenizer.decode(Arrays.copyOfRange(tokens, 1, end));
    }

    @Test
    public void theTextsAreThoseOfTheCommandLine() throws IOException {
        try (Model model = open("t5.oxb");
                Session session = Session.create(model);
                Tokenizer tokenizer = Tokenizer.create(model)) {
            BeamOptions options = model.getAdvisedBeams().beams(4).nBest(2).maxTokens(13);
            try (BeamSearch search = BeamSearch.create(session, options)) {
                StringBuilder lines = new StringBuilder();
                for (int i = 0; i < 2; ++i) {
                    lines.setLength(0);
                    session.encode(tokenizer.encode(TEXT));
                    for (BeamText text : search.run()) {
                        lines.append(String.format(Locale.ROOT, "%.6f  ", text.getScore()))
                                .append(shown(model, tokenizer, text))
                                .append('\n');
                    }
                    assertEquals(read("t5.beams.txt"), lines.toString());
                }
            }
        }
    }

    @Test
    public void whatCannotBeSearchedIsRefused() {
        try (Model model = open("t5.oxb");
                Session session = Session.create(model)) {
            refused(OxbowException.INVALID_ARGUMENT, () -> new BeamOptions().beams(0));
            refused(OxbowException.INVALID_ARGUMENT, () -> new BeamOptions().nBest(0));
            refused(OxbowException.INVALID_ARGUMENT, () -> new BeamOptions().maxTokens(-1));
            refused(OxbowException.INVALID_ARGUMENT, () -> new BeamOptions().stop(BeamStop.UNKNOWN));
            refused(
                    OxbowException.INVALID_ARGUMENT,
                    () -> BeamSearch.create(session, new BeamOptions().beams(65).maxTokens(5)));
            refused(
                    OxbowException.INVALID_ARGUMENT,
                    () -> BeamSearch.create(session, new BeamOptions().nBest(5).maxTokens(5)));
            refused(
                    OxbowException.INVALID_ARGUMENT,
                    () -> BeamSearch.create(session, new BeamOptions().lengthPenalty(Double.NaN).maxTokens(5)));
            try (BeamSearch search = BeamSearch.create(session, new BeamOptions().maxTokens(5))) {
                refused(OxbowException.INVALID_ARGUMENT, () -> search.run(new int[50]));
                refused(OxbowException.INVALID_ARGUMENT, () -> search.run(-1));
            }
        }
    }

    @Test
    public void aSearchKeepsWhatItBorrowsFrom() {
        Model model = open("t5.oxb");
        Session session = Session.create(model);
        BeamSearch search = BeamSearch.create(session, new BeamOptions().maxTokens(5));
        session.encode(new int[] {5, 6, 1});
        List<BeamText> texts = search.run();
        assertEquals(1, texts.size());
        assertTrue(texts.get(0).getTokens().length > 1);
        model.close();
        session.close();
        refused(OxbowException.CLOSED, () -> search.run());
        search.close();
        refused(OxbowException.CLOSED, () -> search.run());
    }
}
