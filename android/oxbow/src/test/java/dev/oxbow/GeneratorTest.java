package dev.oxbow;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;
import static org.junit.Assert.fail;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.Test;

public class GeneratorTest extends Fixture {
    private static String join(Generator generator, String prompt, List<String> pieces) {
        generator.generate(prompt, pieces::add);
        return String.join("", pieces);
    }

    @Test
    public void textIsThatOfTheCommandLine() throws IOException {
        try (Model model = demo();
                Session session = Session.create(model, new SessionOptions().threads(2));
                Generator generator = Generator.create(session, Tool.options())) {
            List<String> pieces = new ArrayList<>();
            assertEquals(read("demo.txt"), join(generator, read("prompt.txt"), pieces));
            assertTrue(pieces.size() > 100);
            // The same again from the same place, and something else from another.
            session.reset();
            assertEquals(read("demo.txt"), generator.generateText(read("prompt.txt")));
            assertFalse(read("demo.txt").equals(generator.generateText(read("prompt.txt"))));
        }
    }

    /** Half a character would become U+FFFD twice: the joined pieces would differ. */
    @Test
    public void piecesAreWholeCharacters() throws IOException {
        for (String name : new String[] {"gpt2", "chat"}) {
            try (Model model = open(name + ".oxb");
                    Session session = Session.create(model);
                    Generator generator = Generator.create(session, Tool.advisedOptions(model))) {
                List<String> pieces = new ArrayList<>();
                assertEquals(read(name + ".txt"), join(generator, read("unicode.txt"), pieces));
                for (String piece : pieces) {
                    assertFalse(piece.isEmpty());
                }
            }
        }
    }

    @Test
    public void aQuestionIsPutBetweenWhatTheModelWants() throws IOException {
        try (Model model = open("chat.oxb");
                Session session = Session.create(model);
                Generator generator = Generator.create(session, Tool.advisedOptions(model).chat(true))) {
            assertEquals(read("chat.answer.txt"), generator.generateText("Where is it?"));
        }
        try (Model model = demo();
                Session session = Session.create(model)) {
            refused(
                    OxbowException.INVALID_ARGUMENT,
                    () -> Generator.create(session, new GeneratorOptions().chat(true)));
        }
    }

    /** The tokens of the prompt are those of a tokenizer with the same options. */
    @Test
    public void whatTheModelWantsAroundATextCanBeLeftOut() throws IOException {
        int[] counts = new int[2];
        try (Model model = open("chat.oxb");
                Session session = Session.create(model)) {
            for (boolean on : new boolean[] {false, true}) {
                session.reset();
                try (Tokenizer tokenizer = Tokenizer.create(model, new TokenizerOptions().addTemplate(on));
                        Generator generator =
                                Generator.create(session, new GeneratorOptions().maxTokens(1).addTemplate(on))) {
                    Generation result = generator.generate("Where is it?", piece -> true);
                    counts[on ? 1 : 0] = tokenizer.encode("Where is it?").length;
                    assertEquals(counts[on ? 1 : 0], result.getPromptTokens());
                }
            }
            assertTrue(counts[0] < counts[1]);
            refused(
                    OxbowException.INVALID_ARGUMENT,
                    () -> Generator.create(session, new GeneratorOptions().maxWordBytes(63)));
            Generator.create(session, new GeneratorOptions().maxWordBytes(64)).close();
        }
    }

    @Test
    public void anEmptyPromptBeginsALine() throws IOException {
        try (Model model = demo();
                Session session = Session.create(model);
                Generator generator = Generator.create(session, Tool.options())) {
            assertEquals(read("empty.txt"), generator.generateText(""));
        }
    }

    @Test
    public void aTextEndsBeforeAStopText() throws IOException {
        String text = read("demo.txt");
        String stop = text.substring(60, 66);
        try (Model model = demo();
                Session session = Session.create(model);
                Generator generator =
                        Generator.create(session, Tool.options().stopTexts("not in it", stop, stop + "!"))) {
            StringBuilder shown = new StringBuilder();
            Generation result =
                    generator.generate(
                            read("prompt.txt"),
                            piece -> {
                                shown.append(piece);
                                return true;
                            });
            assertEquals(text.substring(0, text.indexOf(stop)), shown.toString());
            assertEquals(Generation.Reason.STOP_TEXT, result.getReason());
        }
        // One that only begins is shown after all.
        try (Model model = demo();
                Session session = Session.create(model);
                Generator generator =
                        Generator.create(session, Tool.options().stopTexts(text.substring(text.length() - 3) + "#"))) {
            assertEquals(text, generator.generateText(read("prompt.txt")));
        }
        refused(OxbowException.INVALID_ARGUMENT, () -> new GeneratorOptions().stopTexts("a", ""));
    }

    /** How far the prompt is read, then tokens with the time they took, each before its text. */
    @Test
    public void aListenerMayHearOfPromptAndTokens() throws IOException {
        StringBuilder prompt = new StringBuilder();
        for (int i = 0; i < 100; ++i) {
            prompt.append("And the river. ");
        }
        try (Model model = demo();
                Session session = Session.create(model);
                Generator generator = Generator.create(session, Tool.options().maxTokens(20))) {
            Heard heard = new Heard();
            Generation result = generator.generate(prompt.toString(), heard, new Cancellation());
            assertEquals(Arrays.asList(0, 512, 1024, 1500), heard.done);
            assertEquals(1500, heard.all);
            assertEquals(20, heard.tokens.size());
            assertEquals(20, (long) heard.tokens.get(19));
            assertEquals(20, heard.pieces);
            assertTrue(heard.nanoseconds > 0 && heard.nanoseconds <= result.getTokenNanoseconds());
            // Of tokens in tokens.
            int[] tokens = new int[2 * model.getMaxSegment() + 1];
            Heard next = new Heard();
            generator.generate(tokens, next, new Cancellation());
            assertEquals(Arrays.asList(0, model.getMaxSegment(), 2 * model.getMaxSegment(), tokens.length), next.done);
            // Cancelled while the prompt is read: the next text has nothing of it.
            generator.reset();
            Cancellation cancellation = new Cancellation();
            Heard cancelled = new Heard() {
                @Override
                public void onPrompt(int done, int all) {
                    super.onPrompt(done, all);
                    if (done > 0) {
                        cancellation.cancel();
                    }
                }
            };
            result = generator.generate(prompt.toString(), cancelled, cancellation);
            assertEquals(Generation.Reason.CANCELLED, result.getReason());
            assertEquals(Arrays.asList(0, 512), cancelled.done);
            assertTrue(cancelled.tokens.isEmpty());
        }
    }

    private static class Heard implements ProgressListener {
        final List<Integer> done = new ArrayList<>();
        final List<Long> tokens = new ArrayList<>();
        int all;
        int pieces;
        long nanoseconds;

        @Override
        public void onPrompt(int done, int all) {
            this.done.add(done);
            this.all = all;
        }

        @Override
        public void onToken(long count, long took) {
            assertEquals("a token before its text", pieces, tokens.size());
            tokens.add(count);
            nanoseconds = took;
        }

        @Override
        public boolean onText(String piece) {
            ++pieces;
            return true;
        }
    }

    @Test
    public void theResultTellsWhy() throws IOException {
        int[] prompt = readIds("prompt.ids");
        try (Model model = demo();
                Session session = Session.create(model);
                Generator generator = Generator.create(session, Tool.options().maxTokens(10))) {
            Generation result = generator.generate(read("prompt.txt"), piece -> true);
            assertEquals(Generation.Reason.MAX_TOKENS, result.getReason());
            assertEquals(prompt.length, result.getPromptTokens());
            assertEquals(10, result.getTokens());
            assertEquals(prompt.length + 10, result.getPosition());
            // The last token waits for what follows it.
            assertEquals(prompt.length + 9, session.getPosition());
            result = generator.generate(new int[0], piece -> false, new Cancellation());
            assertEquals(Generation.Reason.CANCELLED, result.getReason());
            assertEquals(0, result.getPromptTokens());
            assertEquals(1, result.getTokens());
            assertEquals(prompt.length + 11, result.getPosition());
        }
        try (Model model = open("gpt2.oxb");
                Session session = Session.create(model);
                Generator generator =
                        Generator.create(session, new GeneratorOptions().maxTokens(Long.MAX_VALUE))) {
            Generation result = generator.generate("The river", piece -> true);
            assertTrue(model.getCapacity() > 0);
            assertEquals(Generation.Reason.STREAM_FULL, result.getReason());
            assertEquals(model.getCapacity(), session.getPosition());
            refused(OxbowException.STREAM_FULL, () -> session.feed(1));
        }
    }

    @Test
    public void aTextGoesOnWhereTheStreamIs() throws IOException {
        try (Model model = demo();
                Session session = Session.create(model);
                Generator generator =
                        Generator.create(
                                session,
                                new GeneratorOptions().maxTokens(30).sampling(new SamplerOptions().temperature(0)));
                Generator whole =
                        Generator.create(
                                session,
                                new GeneratorOptions().maxTokens(60).sampling(new SamplerOptions().temperature(0)))) {
            List<String> pieces = new ArrayList<>();
            generator.generate(read("prompt.txt"), pieces::add);
            generator.generate(new int[0], pieces::add, new Cancellation());
            session.reset();
            assertEquals(whole.generateText(read("prompt.txt")), String.join("", pieces));
            session.reset();
            session.feed(1);
            refused(
                    OxbowException.INVALID_ARGUMENT,
                    () -> generator.generate(new int[0], piece -> true, new Cancellation()));
        }
    }

    @Test
    public void anotherThreadCancels() throws Exception {
        try (Model model = demo();
                Session session = Session.create(model);
                Generator generator = Generator.create(session, new GeneratorOptions().maxTokens(Long.MAX_VALUE))) {
            Cancellation cancellation = new Cancellation();
            CountDownLatch begun = new CountDownLatch(5);
            ExecutorService thread = Executors.newSingleThreadExecutor();
            Future<Generation> running =
                    thread.submit(
                            () ->
                                    generator.generate(
                                            "The river",
                                            piece -> {
                                                begun.countDown();
                                                return true;
                                            },
                                            cancellation));
            begun.await();
            assertFalse(running.isDone());
            cancellation.cancel();
            Generation result = running.get();
            assertEquals(Generation.Reason.CANCELLED, result.getReason());
            assertTrue(result.getTokens() >= 5);
            assertEquals(result.getPromptTokens() + result.getTokens(), result.getPosition());
            thread.shutdown();
            // One that was cancelled before feeds nothing.
            long position = session.getPosition();
            result = generator.generate("The river", piece -> true, cancellation);
            assertEquals(Generation.Reason.CANCELLED, result.getReason());
            assertEquals(0, result.getPromptTokens());
            assertEquals(position, session.getPosition());
        }
    }

    @Test
    public void anExceptionOfTheListenerComesOut() throws IOException {
        try (Model model = demo();
                Session session = Session.create(model);
                Generator generator = Generator.create(session, Tool.options())) {
            IllegalStateException thrown = new IllegalStateException("enough");
            try {
                generator.generate(
                        read("prompt.txt"),
                        piece -> {
                            throw thrown;
                        });
                fail();
            } catch (IllegalStateException e) {
                assertEquals(thrown, e);
            }
            assertEquals(readIds("prompt.ids").length, session.getPosition());
            session.reset();
            assertEquals(read("demo.txt"), generator.generateText(read("prompt.txt")));
        }
    }

    @Test
    public void theListenerCannotUseTheSession() throws IOException {
        try (Model model = demo();
                Session session = Session.create(model);
                Generator generator = Generator.create(session, Tool.options())) {
            generator.generate(
                    read("prompt.txt"),
                    piece -> {
                        refused(OxbowException.BUSY, () -> session.feed(1));
                        refused(OxbowException.BUSY, () -> generator.generateText("more"));
                        return false;
                    });
            session.feed(1);
        }
    }

    @Test
    public void aTextThatWasCutOffResumesElsewhere() throws IOException {
        try (Model model = demo();
                Session session = Session.create(model);
                Session elsewhere = Session.create(model);
                Generator generator = Generator.create(session, Tool.options());
                Generator other = Generator.create(elsewhere, Tool.options())) {
            StringBuilder text = new StringBuilder();
            TextListener listener =
                    piece -> {
                        text.append(piece);
                        return text.length() != 50;
                    };
            assertEquals(Generation.Reason.CANCELLED, generator.generate(read("prompt.txt"), listener).getReason());
            java.nio.ByteBuffer state = direct((int) generator.getStateBytes());
            generator.save(state);
            other.load(state);
            other.generate(new int[0], listener, new Cancellation());
            assertEquals(read("demo.txt"), text.toString());
        }
    }

    @Test
    public void aTextIsOneOfTheChoices() throws IOException {
        try (Model model = demo();
                Session session = Session.create(model);
                Generator generator = Generator.create(session, Tool.options())) {
            generator.setChoices("water", "wind");
            StringBuilder text = new StringBuilder();
            Generation result =
                    generator.generate(
                            "The ",
                            piece -> {
                                text.append(piece);
                                return true;
                            });
            assertEquals(Generation.Reason.CONSTRAINT, result.getReason());
            assertEquals(new String[] {"water", "wind"}[result.getChoice()], text.toString());
            refused(OxbowException.INVALID_ARGUMENT, () -> generator.setChoices());
            refused(OxbowException.INVALID_ARGUMENT, () -> generator.setChoices("a", ""));
            generator.setConstraint(Constraint.NONE);
            generator.reset();
            assertEquals(read("demo.txt"), generator.generateText(read("prompt.txt")));
        }
    }

    @Test
    public void aTurnOfAChatIsTakenBack() throws IOException {
        try (Model model = open("chat.oxb");
                Session session = Session.create(model);
                Generator generator =
                        Generator.create(session, Tool.advisedOptions(model).chat(true).undoTurns(1))) {
            assertEquals(read("chat.answer.txt"), generator.generateText("Where is it?"));
            generator.undo();
            assertEquals(0, session.getPosition());
            assertEquals(read("chat.answer.txt"), generator.generateText("Where is it?"));
        }
    }
}
