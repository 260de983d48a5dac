package dev.oxbow;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import org.junit.Test;

public class SessionTest extends Fixture {
    private static int[] generate(Session session, Sampler sampler, int[] prompt, int count) {
        for (int token : prompt) {
            sampler.accept(token);
        }
        session.feed(prompt);
        int[] tokens = new int[count];
        for (int i = 0; i < count; ++i) {
            tokens[i] = session.sample(sampler);
            sampler.accept(tokens[i]);
            session.feed(tokens[i]);
        }
        return tokens;
    }

    @Test
    public void tokensAreThoseOfTheCommandLine() throws IOException {
        try (Model model = demo();
                Session session = Session.create(model);
                Tokenizer tokenizer = Tokenizer.create(model);
                Sampler sampler = Sampler.create(model, new SamplerOptions().seed(Tool.SEED))) {
            int[] prompt = tokenizer.encode(read("prompt.txt"));
            assertArrayEquals(readIds("prompt.ids"), prompt);
            assertArrayEquals(readIds("demo.ids"), generate(session, sampler, prompt, Tool.TOKENS));
            assertEquals(prompt.length + Tool.TOKENS, session.getPosition());
        }
    }

    @Test
    public void aCancelEndsTheRunUnderWayOrTheNext() throws Exception {
        int[] prompt = readIds("prompt.ids");
        try (Model model = demo();
                Session session = Session.create(model)) {
            session.feed(prompt[0]);
            session.cancel();
            refused(OxbowException.CANCELLED, () -> session.feed(prompt[1]));
            assertEquals(1, session.getPosition());
            session.feed(prompt[1]);
            session.cancel();
            session.reset();
            session.feed(prompt[0]);
            Thread other = new Thread(session::cancel);
            other.start();
            try {
                while (true) {
                    session.feed(prompt[0]);
                }
            } catch (OxbowException e) {
                assertEquals(OxbowException.CANCELLED, e.getCode());
            }
            other.join();
        }
    }

    @Test
    public void aStreamHasNoEmbedding() throws IOException {
        int[] prompt = readIds("prompt.ids");
        try (Model model = demo();
                Session session = Session.create(model)) {
            refused(OxbowException.INVALID_ARGUMENT, () -> session.embed(prompt, Pooling.MEAN, true));
        }
    }

    @Test
    public void anyNumberOfThreadsAndBackendsGiveTheSameTokens() throws IOException {
        int[] prompt = readIds("prompt.ids");
        try (Model model = demo()) {
            for (SessionOptions options :
                    new SessionOptions[] {
                        new SessionOptions().threads(2),
                        new SessionOptions().threads(2).cpuMask(1),
                        new SessionOptions().backend(Backend.CPU),
                        new SessionOptions().backend(Backend.REFERENCE)
                    }) {
                try (Session session = Session.create(model, options);
                        Sampler sampler = Sampler.create(model, new SamplerOptions().seed(Tool.SEED))) {
                    int[] tokens = generate(session, sampler, prompt, 20);
                    assertArrayEquals(Arrays.copyOf(readIds("demo.ids"), 20), tokens);
                    assertEquals(0, session.getBackendBytes());
                }
            }
        }
    }

    @Test
    public void aBackendThatIsNotBuiltInIsRefused() {
        try (Model model = demo()) {
            for (Backend backend : Backend.values()) {
                SessionOptions options = new SessionOptions().backend(backend);
                if (!Oxbow.isBuiltIn(backend) || backend == Backend.NPU) { // Which needs a plug-in.
                    refused(OxbowException.INVALID_ARGUMENT, () -> Session.create(model, options));
                    continue;
                }
                try {
                    Session.create(model, options).close();
                } catch (OxbowException e) {
                    // Built in says nothing of this machine.
                    assertEquals(OxbowException.NO_DEVICE, e.getCode());
                    assertEquals(Backend.VULKAN, backend);
                }
            }
        }
    }

    @Test
    public void runGivesTheLogitsOfAnyOfItsTokens() {
        try (Model model = demo();
                Session session = Session.create(model);
                Sampler sampler = Sampler.create(model, new SamplerOptions().temperature(0))) {
            int width = model.getOutputWidth();
            int[] tokens = {9, 1, 2, 3, 4, 9};
            ByteBuffer all = direct(16 + 4 * width * 4);
            all.position(16);
            session.run(tokens, 1, 4, all, 4);
            assertEquals(16, all.position());
            session.reset();
            ByteBuffer last = logitsOf(model);
            session.run(tokens, 1, 4, last, 1);
            session.reset();
            session.feed(tokens, 1, 4);
            ByteBuffer kept = logitsOf(model);
            session.readLogits(kept);
            for (int i = 0; i < width; ++i) {
                assertEquals(all.getFloat(16 + (3 * width + i) * 4), last.getFloat(i * 4), 0);
                assertEquals(kept.getFloat(i * 4), last.getFloat(i * 4), 0);
            }
            assertEquals(session.sample(sampler), sampler.pick(last));
            session.run(tokens, 1, 1);
            assertEquals(5, session.getPosition());
            refused(OxbowException.INVALID_ARGUMENT, () -> session.sample(sampler));
        }
    }

    @Test
    public void wrongArgumentsAreRefusedAndChangeNothing() {
        try (Model model = demo();
                Session session = Session.create(model);
                Sampler sampler = Sampler.create(model, new SamplerOptions())) {
            int most = model.getMaxSegment();
            refused(OxbowException.INVALID_ARGUMENT, () -> session.sample(sampler));
            session.feed(1);
            refused(OxbowException.INVALID_ARGUMENT, () -> session.feed(-1));
            refused(OxbowException.INVALID_ARGUMENT, () -> session.feed(model.getVocabulary()));
            refused(OxbowException.INVALID_ARGUMENT, () -> session.feed(new int[4], 3, 2));
            refused(OxbowException.INVALID_ARGUMENT, () -> session.feed(new int[4], 1, Integer.MAX_VALUE));
            refused(OxbowException.INVALID_ARGUMENT, () -> session.feed(new int[4], -1, 2));
            refused(OxbowException.INVALID_ARGUMENT, () -> session.run(new int[most + 1], 0, most + 1));
            refused(OxbowException.INVALID_ARGUMENT, () -> session.run(new int[0], 0, 0));
            refused(OxbowException.INVALID_ARGUMENT, () -> session.encode(new int[] {1}));
            refused(OxbowException.INVALID_ARGUMENT, () -> new SessionOptions().threads(0));
            refused(
                    OxbowException.INVALID_ARGUMENT,
                    () -> Session.create(model, new SessionOptions().threads(100000)));
            refused(
                    OxbowException.INVALID_ARGUMENT,
                    () -> Sampler.create(model, new SamplerOptions().temperature(Float.NaN)));
            session.feed(new int[0]);
            assertEquals(1, session.getPosition());
            session.sample(sampler);
        }
    }

    @Test
    public void wrongBuffersAreRefusedWithWords() {
        try (Model model = demo();
                Session session = Session.create(model);
                Sampler sampler = Sampler.create(model, new SamplerOptions())) {
            int bytes = model.getOutputWidth() * 4;
            int[] token = {1};
            ByteOrder other =
                    ByteOrder.nativeOrder() == ByteOrder.BIG_ENDIAN ? ByteOrder.LITTLE_ENDIAN : ByteOrder.BIG_ENDIAN;
            ByteBuffer shifted = direct(bytes + 1);
            shifted.position(1);
            ByteBuffer limited = direct(bytes);
            limited.limit(bytes - 1);
            Object[][] cases = {
                {ByteBuffer.allocate(bytes).order(ByteOrder.nativeOrder()), 10, "heap buffer"},
                {ByteBuffer.allocateDirect(bytes).order(other), 10, "nativeOrder"},
                {direct(bytes).asReadOnlyBuffer().order(ByteOrder.nativeOrder()), 10, "read-only"},
                {direct(bytes - 4), 12, "needed are " + bytes},
                {limited, 12, "needed are " + bytes},
                {shifted, 10, "multiple of 4"},
                {shifted.slice().order(ByteOrder.nativeOrder()), 10, "multiple of 4"},
            };
            for (Object[] row : cases) {
                ByteBuffer buffer = (ByteBuffer) row[0];
                String words = refused((int) row[1], () -> session.run(token, 0, 1, buffer, 1));
                assertTrue(words, words.contains((String) row[2]));
            }
            refused(OxbowException.BUFFER_TOO_SMALL, () -> session.run(token, 0, 1, direct(bytes), Integer.MAX_VALUE));
            refused(OxbowException.INVALID_ARGUMENT, () -> session.run(token, 0, 1, direct(bytes), 0));
            refused(OxbowException.INVALID_ARGUMENT, () -> session.run(token, 0, 1, direct(bytes * 2), 2));
            refused(OxbowException.BUFFER_TOO_SMALL, () -> sampler.pick(direct(bytes - 4)));
            assertEquals(0, session.getPosition());
            ByteBuffer state = direct((int) session.getStateBytes());
            refused(OxbowException.INVALID_ARGUMENT, () -> session.save(ByteBuffer.allocate(state.capacity())));
            refused(OxbowException.INVALID_ARGUMENT, () -> session.save(state.asReadOnlyBuffer()));
            refused(OxbowException.BUFFER_TOO_SMALL, () -> session.save(direct(state.capacity() - 1)));
        }
    }

    @Test
    public void aStateGoesToAnotherSession() throws IOException {
        int[] prompt = readIds("prompt.ids");
        try (Model model = demo();
                Session first = Session.create(model);
                Session second = Session.create(model);
                Model other = open("gpt2.oxb");
                Session stranger = Session.create(other)) {
            first.feed(prompt);
            ByteBuffer state = direct((int) first.getStateBytes() + 32);
            state.position(32);
            first.save(state);
            assertEquals(32, state.position());
            first.feed(1);
            second.feed(new int[] {5, 6, 7});
            second.load(state.asReadOnlyBuffer());
            assertEquals(prompt.length, second.getPosition());
            second.feed(1);
            assertEquals(logits(first), logits(second));
            refused(OxbowException.STATE_MISMATCH, () -> stranger.load(state));
            state.put(state.capacity() - 1, (byte) (state.get(state.capacity() - 1) ^ 1));
            refused(OxbowException.STATE_CORRUPT, () -> second.load(state));
            refused(OxbowException.STATE_CORRUPT, () -> second.load(direct(10)));
            assertEquals(logits(first), logits(second));
        }
    }

    private static ByteBuffer logits(Session session) {
        ByteBuffer logits = logitsOf(session.getModel());
        session.readLogits(logits);
        return logits;
    }

    @Test
    public void rewindGoesBackToACheckpoint() throws IOException {
        try (Model model = demo();
                Session session = Session.create(model)) {
            session.feed(readIds("prompt.ids"));
            ByteBuffer here = direct((int) session.getStateBytes());
            session.checkpoint(here);
            session.feed(3);
            ByteBuffer once = logits(session);
            session.feed(new int[] {8, 9});
            session.rewind(here);
            session.feed(3);
            assertEquals(once, logits(session));
        }
    }

    @Test
    public void theArenaMayBeTheCallers() throws IOException {
        try (Model model = demo()) {
            int bytes = (int) model.getArenaBytes(new SessionOptions());
            ByteBuffer memory = direct(bytes + 100);
            memory.position(3);
            memory.limit(3 + bytes);
            try (Session session = Session.create(model, new SessionOptions().arena(memory.slice()));
                    Sampler sampler = Sampler.create(model, new SamplerOptions().seed(Tool.SEED))) {
                assertEquals(bytes, session.getArenaBytes());
                // Nobody else gets any of it while the session is open.
                SessionOptions overlapping = new SessionOptions().arena(memory.duplicate());
                String words = refused(OxbowException.INVALID_ARGUMENT, () -> Session.create(model, overlapping));
                assertTrue(words, words.contains("overlaps"));
                memory.order(ByteOrder.nativeOrder());
                memory.position(4);
                refused(OxbowException.INVALID_ARGUMENT, () -> session.run(new int[] {1}, 0, 1, memory, 1));
                refused(OxbowException.INVALID_ARGUMENT, () -> session.save(memory));
                refused(OxbowException.INVALID_ARGUMENT, () -> session.load(memory));
                assertArrayEquals(
                        Arrays.copyOf(readIds("demo.ids"), 20), generate(session, sampler, readIds("prompt.ids"), 20));
            }
            // And afterwards they do.
            memory.position(3);
            Session.create(model, new SessionOptions().arena(memory)).close();
            memory.limit(3 + bytes - 1);
            refused(
                    OxbowException.ARENA_TOO_SMALL,
                    () -> Session.create(model, new SessionOptions().arena(memory)));
            refused(
                    OxbowException.INVALID_ARGUMENT,
                    () -> new SessionOptions().arena(ByteBuffer.allocate(bytes)));
            refused(
                    OxbowException.INVALID_ARGUMENT,
                    () -> new SessionOptions().arena(direct(bytes).asReadOnlyBuffer()));
        }
    }

    @Test
    public void anArenaIsNotLentOverTheBytesOfAModel() throws IOException {
        byte[] bytes = java.nio.file.Files.readAllBytes(FILES.resolve("demo.oxb"));
        ByteBuffer buffer = DirectBuffers.allocate(bytes.length);
        buffer.put(bytes);
        buffer.flip();
        try (Model model = Model.open(buffer)) {
            SessionOptions options = new SessionOptions().arena(buffer);
            refused(OxbowException.INVALID_ARGUMENT, () -> Session.create(model, options));
        }
    }

    @Test
    public void anEncoderReadsTheTextToTranslate() {
        try (Model model = open("t5.oxb");
                Session session = Session.create(model);
                Tokenizer tokenizer = Tokenizer.create(model);
                Generator generator =
                        Generator.create(
                                session,
                                new GeneratorOptions()
                                        .maxTokens(12)
                                        .sampling(new SamplerOptions().temperature(0)))) {
            assertEquals(Task.TRANSLATE, model.getTask());
            session.encode(tokenizer.encode("The river is long."));
            StringBuilder text = new StringBuilder();
            generator.generate(
                    new int[0],
                    piece -> {
                        text.append(piece);
                        return true;
                    },
                    new Cancellation());
            assertEquals(readUnchecked("t5.txt"), text.toString());
        }
    }

    private static String readUnchecked(String name) {
        try {
            return read(name);
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }
}
